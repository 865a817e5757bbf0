"""The agents of the served registry that this daemon hosts, and their state."""

import time
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import structlog

from ..agent_registry import (
    MAX_REGISTRY_AGENTS,
    AgentReference,
    FetchedAgent,
    RegisteredAgent,
    RegisteredAgentState,
    RegistrySettings,
    after_fetch,
    state_of,
)
from .registered_card import hosted_record
from .registry_content import RegistryContent
from .registry_kinds import Kind

_log = structlog.get_logger("toold.registry")


class ServedAgents:
    """The agents of the served registry, for the host of agents. Nothing polls the registry: ``update`` is called after
    each change."""

    def __init__(self, settings: RegistrySettings | None) -> None:
        self.settings = settings
        """If None, no agent of the registry is hosted."""
        self._reported: dict[str, str] = {}
        self._left_out = 0
        self.known: Sequence[RegisteredAgent] = ()

    @property
    def states(self) -> list[RegisteredAgentState]:
        """The state of each agent."""
        return [state_of(agent) for agent in self.known]

    @property
    def problems(self) -> list[str]:
        """One sentence for each agent that is not hosted as defined in the registry."""
        problems = [problem for agent in self.known if (problem := agent.problem)]
        if self._left_out:
            problems.append(
                f"the registry has {self._left_out} agents more than the {MAX_REGISTRY_AGENTS} that are hosted; "
                "name those to host in agents of [registry]"
            )
        return problems

    @property
    def tools(self) -> dict[str, str]:
        """The name of the tool of each hosted agent, by the agent's id."""
        return {agent.reference.id: agent.good.agent.name for agent in self.known if agent.hosted and agent.good}

    def apply(self, settings: RegistrySettings | None) -> None:
        """Uses new settings, from the next ``update`` on."""
        if settings != self.settings:
            self.settings = settings
            self.known = ()

    def update(self, content: RegistryContent) -> None:
        """Rereads the definitions."""
        settings, now = self.settings, time.time()
        if settings is None:
            self.known, self._left_out = (), 0
            return
        entries = content.references()
        records = {
            agent_id: hosted_record(agent_id, entry, entries) for agent_id, entry in content.tables(Kind.AGENT).items()
        }
        references = settings.agents
        if settings.all_agents:
            runnable = [AgentReference(agent_id, None) for agent_id, record in records.items() if record is not None]
            references, self._left_out = tuple(runnable[:MAX_REGISTRY_AGENTS]), len(runnable[MAX_REGISTRY_AGENTS:])
        earlier = {agent.reference: agent for agent in self.known}
        known = []
        for reference in references:
            record = records.get(reference.id)
            if record is None:
                why = "has no roles" if reference.id in records else "is not in the registry"
                known.append(RegisteredAgent(reference, answered_at=now, failure=f"it {why}"))
                continue
            agent = replace(earlier.get(reference, RegisteredAgent(reference)), failure=None)
            # In the form read from JSON: the settings of agents have no tuples.
            fetched = FetchedAgent(msgspec.json.decode(msgspec.json.encode(record)), None)
            known.append(after_fetch(agent, fetched, settings, now))
        self.known = known

    def settle(self, planned: Sequence[RegisteredAgent]) -> None:
        """Records the definitions that are hosted."""
        self.known = planned
        reported = {agent.reference.id: problem for agent in planned if (problem := agent.problem)}
        for agent_id, problem in reported.items():
            if self._reported.get(agent_id) != problem:
                _log.warning("an agent of the served registry has a problem", problem=problem)
        self._reported = reported
