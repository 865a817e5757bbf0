"""The hosted agents of the settings, as tools of the catalog."""

from collections.abc import Callable, Mapping, Sequence

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
from .config.settings import Settings
from .config.settings_mapping import hosted_agents


class AgentHost:
    """Makes a tool of each agent, and those for their recorded runs. A run in progress keeps the definition that it
    began with."""

    def __init__(
        self, settings: Settings, prompts: PromptSource, records: AgentRecords, changed: Callable[[], None]
    ) -> None:
        """``changed`` is called when ``tools`` has changed.

        Raises:
            SettingsError: a definition is invalid.
        """
        self._prompts = prompts
        self._changed = changed
        self._busy = BusyConversations()
        self._run_tools = (agent_runs_tool(records), agent_replay_tool(records, prompts))
        self._agents: Mapping[str, Agent] = hosted_agents(settings)
        self.tools = self._made()

    def apply(self, agents: Mapping[str, Agent]) -> bool:
        """Replaces the agents; returns whether they have changed."""
        if agents == self._agents:
            return False
        self._agents = agents
        self.tools = self._made()
        self._changed()
        return True

    def _made(self) -> Sequence[Tool]:
        """All tools; without agents none, since a listing costs every client tokens."""
        agents = agent_tools(self._agents.values(), self._prompts, self._busy)
        return [*agents, *self._run_tools] if agents else []
