"""The hosted agents of the settings, as tools of the catalog."""

from collections.abc import Callable, Mapping, Sequence

from ..tools import Agent, BusyConversations, PromptSource, Tool, agent_tools
from .config.settings import Settings
from .config.settings_mapping import hosted_agents


class AgentHost:
    """Makes a tool of each agent. A run in progress keeps the definition that it began with."""

    def __init__(self, settings: Settings, prompts: PromptSource, changed: Callable[[], None]) -> None:
        """``changed`` is called when ``tools`` has changed.

        Raises:
            SettingsError: a definition is invalid.
        """
        self._prompts = prompts
        self._changed = changed
        self._busy = BusyConversations()
        self._agents: Mapping[str, Agent] = hosted_agents(settings)
        self.tools: Sequence[Tool] = agent_tools(self._agents.values(), prompts, self._busy)

    def apply(self, agents: Mapping[str, Agent]) -> bool:
        """Replaces the agents; returns whether they have changed."""
        if agents == self._agents:
            return False
        self._agents = agents
        self.tools = agent_tools(agents.values(), self._prompts, self._busy)
        self._changed()
        return True
