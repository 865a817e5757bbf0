"""The plan of an architecture, from its entry and the agents that are hosted here. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..protocol.error_codes import InvalidArgumentsError, NotFoundError
from ..tools import ArchitecturePlan, PlanMember
from .registry_content import RegistryContent
from .registry_kinds import Kind
from .registry_problem import RegistryRefusedError

_LEADERS = ("coordinator", "hub")
"""The roles of an agent that leads the others; if no agent has such a role, the first agent leads."""


def remote_tools(content: RegistryContent, sources: Mapping[str, str]) -> dict[str, str]:
    """The tools of remote agents by the agents' ids. ``sources`` has the URL of each source that is a remote agent."""
    by_url = {url.rstrip("/"): name for name, url in sources.items()}
    urls = {agent_id: entry["url"].rstrip("/") for agent_id, entry in content.tables(Kind.AGENT).items()}
    return {agent_id: by_url[url] for agent_id, url in urls.items() if url and url in by_url}


def plan_of(architecture_id: str, content: RegistryContent, hosted: Mapping[str, str]) -> ArchitecturePlan:
    """The plan. ``hosted`` has, by id, the tool's name of each agent that is hosted here or called as a remote agent.

    Raises:
        NotFoundError: there is no such architecture.
        InvalidArgumentsError: some of its agents are not hosted here.
    """
    try:
        entry = content.newest(Kind.ARCHITECTURE, architecture_id).table
    except RegistryRefusedError as error:
        raise NotFoundError(str(error)) from None
    agents, ids = content.tables(Kind.AGENT), [member["agent_id"] for member in entry["agents"]]
    elsewhere = [agents[each]["name"] for each in ids if each not in hosted]
    if elsewhere:
        raise InvalidArgumentsError(
            f"These agents of the architecture are not hosted by this daemon: {', '.join(elsewhere)}. Host them with "
            "agents in [registry], or configure them as remote agents: [sources.NAME] with type a2a and the same url."
        )
    names = [agents[each]["name"] for each in ids]
    members = [
        PlanMember(
            name if names.count(name) == 1 else f"{name} ({agent_id})",
            hosted[agent_id],
            agents[agent_id]["description"],
            member["role"],
            below,
        )
        for name, agent_id, member, below in zip(names, ids, entry["agents"], _tree(entry, ids), strict=True)
    ]
    return ArchitecturePlan(
        name=entry["name"],
        pattern=entry["pattern"],
        members=tuple(members),
        timeout_s=float(entry["timeout"]),
        retries=entry["retry_count"],
        max_iterations=entry["max_iterations"],
        stop_when=entry["stop_when"],
    )


def _tree(entry: Mapping[str, Any], ids: Sequence[str]) -> list[tuple[int, ...]]:
    """For each agent, the places of the agents below it."""
    below: list[tuple[int, ...]] = [()] * len(ids)
    if entry["connections"]:
        for connection in entry["connections"]:
            below[ids.index(connection["from"])] += (ids.index(connection["to"]),)
    elif entry["pattern"] in {"coordinator", "hub-spoke", "hierarchical"}:
        roles = [member["role"] for member in entry["agents"]]
        leader = next((place for place, role in enumerate(roles) if role in _LEADERS), 0)
        below[leader] = tuple(place for place in range(len(ids)) if place != leader)
    return below
