"""The two registries whose agents the daemon hosts: the one that it polls, and the one that it serves."""

from collections.abc import Sequence

from ..agent_registry import RegisteredAgent, RegisteredAgentState, RegistrySettings, RegistryWatch
from ..served_registry import LiteLlmRegistration, ServedAgents


class HostedRegistries:
    """The agents of both registries; agents of the polled registry take precedence."""

    def __init__(self, watch: RegistryWatch, served: ServedAgents, registration: LiteLlmRegistration) -> None:
        self._watch = watch
        self._served = served
        self._registration = registration

    @property
    def settings(self) -> RegistrySettings | None:
        """The settings in use; None without any registry."""
        return self._watch.settings or self._served.settings

    @property
    def known(self) -> Sequence[RegisteredAgent]:
        """The known definition and state of each agent."""
        return (*self._watch.known, *self._served.known)

    @property
    def states(self) -> list[RegisteredAgentState]:
        """The state of each agent."""
        return [*self._watch.states, *self._served.states]

    @property
    def problems(self) -> list[str]:
        """One sentence for each agent whose hosted definition differs from its registry's, or that LiteLLM lacks."""
        return [*self._watch.problems, *self._served.problems, *self._registration.problems.values()]

    def settle(self, planned: Sequence[RegisteredAgent]) -> None:
        """Record which definitions are hosted."""
        asked = len(self._watch.known)
        self._watch.settle(planned[:asked])
        self._served.settle(planned[asked:])
