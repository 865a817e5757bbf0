"""The nesting depth of calls. Orchestration calls and agents are counted separately. Pure."""

from typing import Final, NamedTuple

from ...protocol.error_codes import CallError, InvalidArgumentsError
from ...tools import Tool

MAX_PARTS: Final = 32
"""The maximum nesting of the hidden orchestration calls of one agent, such as its roles. It equals the maximum number
of roles (``agent_definition.MAX_ROLES``), because each role may delegate to the next."""


class Nesting(NamedTuple):
    """The orchestration calls and agents from the client's call to this one, both included."""

    orchestrations: int = 0
    """The number of orchestration calls that are neither agents nor parts of one."""
    agents: tuple[str, ...] = ()
    """The agents that called each other, the outermost first."""
    parts: int = 0
    """The number of hidden orchestration calls of the innermost agent."""

    def below(self, tool: Tool, *, hidden: bool) -> "Nesting":
        """The nesting of a child of this call; ``hidden``: its tool is in no catalog."""
        if not tool.orchestration:
            return self
        if tool.agent:
            return Nesting(self.orchestrations, (*self.agents, tool.name))
        if hidden and self.agents:
            return self._replace(parts=self.parts + 1)
        return self._replace(orchestrations=self.orchestrations + 1)


ROOT: Final = Nesting()


def nesting_refusal(nesting: Nesting, *, max_depth: int, max_agent_depth: int) -> CallError | None:
    """The refusal of a call that would be nested too deeply."""
    if nesting.orchestrations > max_depth:
        return InvalidArgumentsError.content_free(
            f"Orchestration calls can be nested {max_depth} deep; call the tool with fewer tools around it."
        )
    if len(nesting.agents) > max_agent_depth:
        return InvalidArgumentsError.content_free(
            f"Agents can call each other {max_agent_depth} deep (max_agent_depth), and this would be one more: "
            f"{' → '.join(nesting.agents)}. Let an agent call fewer others, or raise max_agent_depth."
        )
    if nesting.parts > MAX_PARTS:
        return InvalidArgumentsError.content_free(
            f"The parts of the agent {nesting.agents[-1]} can be nested {MAX_PARTS} deep, and this would be one more."
        )
    return None
