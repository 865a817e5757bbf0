"""One run of an agent: its snapshot, and the hidden tools that run its turns and roles as calls."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from ...protocol.error_codes import CallError, ServiceUnavailableError, ToolExecutionError, error_from_wire
from ...protocol.tool_call import ToolResult
from ..conversation import Turn
from ..orchestration_context import OrchestrationContext
from ..tool import Arguments, ToolOutput, tool
from .agent_definition import Agent, Role
from .agent_snapshot import ENGINE, RoleSnapshot, RunSnapshot
from .agent_turn import agent_turn, run_turn
from .role_summary import agent_summary, run_summary
from .run_totals import CallReport, RunTotals


class ConversationSummary(msgspec.Struct, frozen=True):
    """A summary of a conversation's earlier messages, which precedes the next message."""

    text: str
    until: float
    """The time of the last turn that the summary covers (``Turn.at``)."""


class RoleAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer of a role."""

    text: str
    data: Any = msgspec.UNSET
    """The answer as JSON, if the role has an ``answer_schema``."""
    turns: int = 0
    calls: tuple[CallReport, ...] = ()
    unlisted_calls: int = 0
    summaries: int = 0
    warnings: tuple[str, ...] = ()
    of_conversation: ConversationSummary | None = None
    """The role's summary of the conversation, if it made one."""
    stopped_by: str = ""
    """``max_turns`` if the role had to answer early."""
    exited: bool = False
    """Whether the role ended the loop."""
    answered_by: str = ""
    """The role that answered in place of this role."""

    @property
    def totals(self) -> RunTotals:
        """The turns and calls of the role, and of the roles to which it delegated."""
        return RunTotals(self.turns, self.calls, self.unlisted_calls, self.summaries, self.warnings)

    def with_totals(self, totals: RunTotals) -> "RoleAnswer":
        """The same answer with these turns and calls."""
        return msgspec.structs.replace(self, **totals._asdict())


class RoleArguments(Arguments):
    """A role and its prompt."""

    agent: str
    role: str
    prompt: str
    with_history: bool = False
    """Whether the role reads the conversation's earlier turns."""


@tool("agent_role", read_only=False, destructive=True, open_world=True, timeout_s=1800.0, orchestration=True)
async def agent_role(_arguments: RoleArguments, _context: OrchestrationContext) -> ToolOutput:
    """Run one role of an agent until it answers."""
    raise NotImplementedError  # a run replaces this function with one that has its snapshot


class AgentRun:
    """A run, in the call of the agent and in the calls of its roles. Each role is a separate call, except the leader in
    flows that have one.
    """

    def __init__(self, snapshot: RunSnapshot, cache_key: str, run_role: "RunRole") -> None:
        """``run_role`` runs the roles that are separate calls.

        Raises:
            ServiceUnavailableError: another version of the engine began the run.
        """
        if snapshot.engine != ENGINE:
            message = f"This run was begun by another version of the agent engine ({snapshot.engine}, now {ENGINE})."
            raise ServiceUnavailableError.content_free(f"{message} Start it again.", executed="maybe", transient=False)
        self.snapshot = snapshot
        self.agent = Agent.model_validate(snapshot.agent)
        self._run_role = run_role
        self._turns = 0
        self._turn_tools = {
            role.name: agent_turn.with_function(
                partial(run_turn, role, snapshot.roles[role.name], cache_key, self.agent.fallback, snapshot.images)
            )
            for role in self.agent.roles
        }
        self._summary_tools = {
            role.name: agent_summary.with_function(
                partial(run_summary, role, snapshot.roles[role.name], cache_key, self.agent.fallback)
            )
            for role in self.agent.roles
        }
        self._role_tool = agent_role.with_function(self._run_role_call)

    def offered(self, role: Role) -> RoleSnapshot:
        """The snapshot of a role."""
        return self.snapshot.roles[role.name]

    @property
    def turns_left(self) -> int:
        """The number of turns that the run may still make."""
        return max(0, self.agent.max_turns - self._turns)

    async def turn(
        self, role: Role, arguments: dict[str, Any], name: str, context: OrchestrationContext, *, stream: bool = True
    ) -> ToolResult:
        """One turn of a role, as the child call ``name``.

        Raises:
            ToolExecutionError: the run has made ``max_turns``.
        """
        self._turns += 1
        if self._turns > self.agent.max_turns:
            message = f"{self.agent.name} was stopped after {self.agent.max_turns} turns (max_turns)"
            raise ToolExecutionError.content_free(f"{message}; give it less to do, or raise max_turns.", executed="yes")
        tool = self._turn_tools[role.name]
        on_chunk = context.stream if stream and context.streaming else None
        return await context.call(tool, arguments, name=name, journal=True, on_chunk=on_chunk)

    async def summary(
        self, role: Role, arguments: dict[str, Any], name: str, context: OrchestrationContext
    ) -> ToolResult:
        """A summary of a role's oldest messages, as the child call ``name``."""
        return await context.call(self._summary_tools[role.name], arguments, name=name, journal=True)

    def role_arguments(self, role: Role, prompt: str, *, with_history: bool) -> dict[str, Any]:
        """The arguments of ``role_call``'s child call."""
        return {"agent": self.agent.name, "role": role.name, "prompt": prompt, "with_history": with_history}

    async def role_call(
        self, role: Role, prompt: str, name: str, context: OrchestrationContext, *, with_history: bool, stream: bool
    ) -> ToolResult:
        """Runs a role as the child call ``name``, whose data is a ``RoleAnswer``."""
        arguments = self.role_arguments(role, prompt, with_history=with_history)
        on_chunk = context.stream if stream and context.streaming else None
        result = await context.call(self._role_tool, arguments, name=name, journal=True, on_chunk=on_chunk)
        if result.metadata.replayed and result.error is None:  # the role's turns are not repeated
            self._turns += msgspec.convert(result.structured, RoleAnswer).turns
        return result

    async def _run_role_call(self, arguments: RoleArguments, context: OrchestrationContext) -> ToolOutput:
        history = self.snapshot.history if arguments.with_history else ()
        role = self.agent.role(arguments.role)
        answer = await self._run_role(self, role, arguments.prompt, context, history)
        return ToolOutput(answer.text, msgspec.to_builtins(answer))


RunRole = Callable[[AgentRun, Role, str, OrchestrationContext, tuple[Turn, ...]], Awaitable[RoleAnswer]]


def answer_of(result: ToolResult, role: Role, name: str) -> RoleAnswer:
    """The answer of a role's call, which is the child call ``name``.

    Raises:
        CallError: the role failed; the message names it.
    """
    if result.error is not None:
        raise role_failed(error_from_wire(result.error), role)
    answer = msgspec.convert(result.structured, RoleAnswer)
    return msgspec.structs.replace(answer, calls=tuple(call.of_child(name) for call in answer.calls))


def role_failed(error: CallError, role: Role) -> CallError:
    """The error of a role with the role's name, unless the message has the name already."""
    place = f"role {role.name}: "
    return type(error)(
        f"{place}{error.message.removeprefix(place)}",
        executed=error.executed,
        transient=error.transient,
        retry_after_ms=error.retry_after_ms,
        details=error.details,
        summary=error.summary,
    )
