"""The state of a registry's agents, and the choice of the definitions to host. Pure."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import msgspec

from ..tools import Agent, AgentDefinitionError, check_cycles, names_no_tools, read_agent
from .registry_client import AbsentAgent, FailedFetch, FetchedAgent, FetchOutcome
from .registry_settings import AgentReference, RegistrySettings

GONE_AFTER: Final = 2
"""After this many consecutive polls in which the registry reports that it lacks an agent, the agent is no longer
hosted. One poll is not enough, because a registry without a database has no agents for a moment after its restart.
"""

State = Literal["loading", "current", "kept", "missing"]


class RegisteredAgentState(msgspec.Struct, frozen=True):
    """The state of one agent of the registry, for people."""

    id: str
    name: str | None
    """The name of the agent's tool; None if it is not known yet."""
    state: State
    """``current``: the registry's definition is hosted. ``kept``: an earlier definition is hosted. ``missing``: not
    hosted. ``loading``: the registry has not been asked yet.
    """
    answered_at: float | None
    """The Unix time of the registry's last answer for the agent; None if it has not answered since the start."""
    problem: str | None


@dataclass(frozen=True, slots=True)
class Definition:
    """A valid definition, and the JSON of its record."""

    content: bytes
    agent: Agent


@dataclass(frozen=True, slots=True)
class RegisteredAgent:
    """The state of one agent."""

    reference: AgentReference
    good: Definition | None = None
    """The last hosted definition; after a start, from the disk."""
    kept_since: str | None = None
    """If ``good`` is from the disk: the time at which the registry last returned it."""
    latest: Definition | None = None
    """A newer definition that is valid on its own."""
    etag: str | None = None
    hosted: bool = False
    """Whether ``good`` is hosted."""
    answered_at: float | None = None
    failure: str | None = None
    """Why the last poll failed."""
    invalid: str | None = None
    """Why the last record is not used."""
    conflict: str | None = None
    """Why the agent cannot be hosted next to the other agents."""
    absences: int = 0
    registered_url: str = ""
    """The URL that the registry has for the agent."""

    @property
    def problem(self) -> str | None:
        """The problem, as a sentence; None if the registry's definition is hosted."""
        reason = self.failure or self.invalid or self.conflict
        if reason is None:
            return None
        since = f", of {self.kept_since}" if self.kept_since else ""
        consequence = f"its last good definition is hosted{since}" if self.hosted else "it is not hosted"
        return f"agent {self.reference.name or self.reference.id} of the registry: {reason}; {consequence}"


def state_of(known: RegisteredAgent) -> RegisteredAgentState:
    """The state for people."""
    problem = known.problem
    state: State = "current" if problem is None and known.answered_at is not None else "kept"
    if not known.hosted:
        state = "loading" if problem is None else "missing"
    definition = known.good or known.latest
    name = definition.agent.name if definition else known.reference.name
    return RegisteredAgentState(known.reference.id, name, state, known.answered_at, problem)


def after_fetch(
    known: RegisteredAgent, outcome: FetchOutcome, settings: RegistrySettings, now: float
) -> RegisteredAgent:
    """The agent's state after an answer of the registry; ``now`` is Unix time."""
    if isinstance(outcome, FailedFetch):
        return replace(known, failure=outcome.reason)
    known = replace(known, failure=None, answered_at=now)
    if isinstance(outcome, AbsentAgent):
        return _absent(known)
    known = replace(known, absences=0)
    if not isinstance(outcome, FetchedAgent):
        return known
    url, record = outcome.record.get("url"), {**outcome.record, "url": ""}
    known = replace(known, etag=outcome.etag, registered_url=url if isinstance(url, str) else "")
    try:
        if known.good is not None and known.good.content == msgspec.json.encode(record):
            return replace(known, latest=None, invalid=None, kept_since=None)
        latest = definition_of(record, known.reference, settings)
    except RecursionError:  # encoding allows fewer levels than decoding
        return replace(known, latest=None, invalid="its definition is nested too deeply")
    except AgentDefinitionError as error:
        return replace(known, latest=None, invalid=f"its definition is invalid: {error}")
    return replace(known, latest=latest, invalid=None)


def _absent(known: RegisteredAgent) -> RegisteredAgent:
    absences = known.absences + 1
    known = replace(known, absences=absences, etag=None, registered_url="", latest=None, invalid=None)
    if known.good is None or absences >= GONE_AFTER:
        return replace(known, good=None, failure="the registry has no such agent")
    return replace(known, failure="the registry reports that it has no such agent; it is asked once more")


def definition_of(record: Mapping[str, Any], reference: AgentReference, settings: RegistrySettings) -> Definition:
    """The definition in a registry's record.

    Raises:
        AgentDefinitionError: the definition is invalid; the message names the field.
    """
    stated = record.get("agent_id", reference.id)
    if stated != reference.id:
        raise AgentDefinitionError("agent_id belongs to another agent")
    name = reference.name or tool_name_of(record.get("name"), reference.id)
    return Definition(msgspec.json.encode(record), read_agent(name, completed_record(record, settings)))


def tool_name_of(name: object, agent_id: str) -> str:
    """The name of an agent's tool: ``Pipe Line`` → ``Pipe_Line``."""
    text = name if isinstance(name, str) else ""
    return (
        re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_")[:64]
        or f"agent_{re.sub(r'[^A-Za-z0-9_-]+', '_', agent_id)[:32]}"
    )


def completed_record(record: Mapping[str, Any], settings: RegistrySettings) -> Mapping[str, Any]:
    """The record with the settings' provider and prompt in its roles.

    Raises:
        AgentDefinitionError: the record has no runtime configuration.
    """
    config = record.get("runtime_config")
    if not isinstance(config, Mapping):
        raise AgentDefinitionError("runtime_config must be a JSON object")
    roles = config.get("roles")
    if isinstance(roles, list):
        roles = [_completed_role(role, settings) if isinstance(role, Mapping) else role for role in roles]
    return {**record, "runtime_config": {**config, "roles": roles}}


_PROMPT_FIELDS: Final = ("prompt_inline", "instruction", "prompt_ref", "phoenix_prompt_name")


def _completed_role(role: Mapping[str, Any], settings: RegistrySettings) -> dict[str, Any]:
    completed = dict(role)
    model = role.get("model")
    if settings.provider and isinstance(model, str) and model and not model.startswith(f"{settings.provider}/"):
        completed["model"] = f"{settings.provider}/{model}"
    if not any(role.get(field) for field in _PROMPT_FIELDS):
        completed["prompt_inline"], completed["prompt_ref"] = settings.prompt, settings.prompt_ref
    tools = role.get("tools")
    if settings.sources and (not tools or (isinstance(tools, list) and names_no_tools(tools))):
        completed["tools"] = [{"source": source} for source in settings.sources]
    return completed


def plan_agents(
    known: Sequence[RegisteredAgent], configured: Mapping[str, Agent], taken: Collection[str]
) -> tuple[dict[str, Agent], tuple[RegisteredAgent, ...]]:
    """The agents to host, and the resulting state of the registry's agents.

    ``configured`` are the agents of the settings, which take precedence; ``taken`` are the names of other tools. If the
    latest definition of an agent conflicts with earlier agents, its last good definition is used instead.
    """
    hosted, planned = _planned(known, configured, taken, in_steps=False)
    try:
        check_cycles(hosted)
    except AgentDefinitionError:
        # Rare, and slow for many agents: checks after each agent, to find the one that closes the cycle.
        return _planned(known, configured, taken, in_steps=True)
    return hosted, planned


def _planned(
    known: Sequence[RegisteredAgent], configured: Mapping[str, Agent], taken: Collection[str], *, in_steps: bool
) -> tuple[dict[str, Agent], tuple[RegisteredAgent, ...]]:
    hosted = dict(configured)
    planned = []
    for agent in known:
        conflict, chosen = None, None
        for definition in (agent.latest, agent.good):
            if definition is None:
                continue
            reason = _conflict(definition.agent, hosted, taken, with_cycles=in_steps)
            if reason is None:
                chosen = definition
                break
            conflict = conflict or reason
        if chosen is not None:
            hosted[chosen.agent.name] = chosen.agent
        good = chosen or agent.good
        latest = None if chosen is agent.latest else agent.latest
        since = agent.kept_since if good is agent.good else None
        planned.append(
            replace(agent, good=good, kept_since=since, latest=latest, conflict=conflict, hosted=chosen is not None)
        )
    return hosted, tuple(planned)


def _conflict(agent: Agent, hosted: Mapping[str, Agent], taken: Collection[str], *, with_cycles: bool) -> str | None:
    if agent.name in hosted or agent.name in taken:
        return f"another {'agent' if agent.name in hosted else 'tool'} is named {agent.name!r}; name it in agents"
    if not with_cycles:
        return None
    try:
        check_cycles({**hosted, agent.name: agent})
    except AgentDefinitionError as error:
        return str(error)
    return None
