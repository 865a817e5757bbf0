"""The hosted agents of the settings, of deployments and of the registry, as tools of the catalog."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from ..agent_registry import plan_agents
from ..tools import (
    Agent,
    AgentRecords,
    BusyConversations,
    PromptSource,
    Tool,
    agent_replay_tool,
    agent_runs_tool,
    agent_tools,
)
from .hosted_registries import HostedRegistries


class OnlyAgent(NamedTuple):
    """The agent of a daemon that runs as one agent."""

    name: str
    """Its name, or its id in the registry as long as the name is unknown."""
    hosted: bool


class AgentHost:
    """Creates a tool for each agent, and the tools for recorded runs. A run in progress keeps the definition with which
    it began."""

    def __init__(
        self,
        configured: Mapping[str, Agent],
        registries: HostedRegistries,
        prompts: PromptSource,
        records: AgentRecords,
        *,
        taken: Collection[str],
        changed: Callable[[], None],
        deployed: Callable[[Mapping[str, Agent]], Mapping[str, Agent]] = lambda _: {},
        more: Sequence[Tool] = (),
    ) -> None:
        """``taken`` are the names of other tools; ``changed`` is called when ``tools`` has changed. ``deployed``
        returns the deployed agents that do not conflict with those of the settings; ``more`` are the tools that deploy
        agents.
        """
        self._deployed = deployed
        self._more = more
        self._configured = configured
        self.registries = registries
        self._prompts = prompts
        self._changed = changed
        self._busy = BusyConversations()
        self.records = records
        self._run_tools = (agent_runs_tool(records), agent_replay_tool(records, prompts))
        self._taken = frozenset(taken) | {tool.name for tool in (*self._run_tools, *more)}
        self._agents = self._plan()
        self.tools = self._made()

    @property
    def agents(self) -> Mapping[str, Agent]:
        """The agents that are hosted now, by name."""
        return self._agents

    def only(self) -> OnlyAgent:
        """The agent of a daemon that runs as one agent."""
        hosted = next(iter(self._agents), None)
        if hosted is not None:
            return OnlyAgent(hosted, True)
        reference = self.registries.known[0].reference
        return OnlyAgent(reference.name or reference.id, False)

    def apply(self, configured: Mapping[str, Agent]) -> bool:
        """Replaces the agents of the settings; returns whether they have changed."""
        if configured == self._configured:
            return False
        self._configured = configured
        self.update()
        return True

    def update(self) -> None:
        """Hosts the current agents of the settings, the deployments and the registry."""
        agents = self._plan()
        if agents != self._agents:
            self._agents = agents
            self.tools = self._made()
            self._changed()

    def _plan(self) -> dict[str, Agent]:
        own = {**self._configured, **self._deployed(self._configured)}
        agents, known = plan_agents(self.registries.known, own, self._taken)
        self.registries.settle(known)
        return agents

    def _made(self) -> Sequence[Tool]:
        """All tools. Without agents, there are no tools for runs either, because a listing costs every client
        tokens."""
        agents = agent_tools(self._agents.values(), self._prompts, self._busy)
        return [*agents, *self._run_tools, *self._more] if agents else self._more
