"""Finds the agent for a query, with the search that also finds tools. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from ..protocol.tool_call import Annotations, ToolInfo
from ..tools import RankedTool, rank_tools
from .registry_content import RegistryContent
from .registry_kinds import Kind
from .registry_problem import RegistryRefusedError

MAX_QUERY_CHARS: Final = 2000
MAX_MATCHES: Final = 10
"""The number of further agents in an answer."""
_ANY: Final = Annotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)
_WEAK: Final = 0.25
"""Agents whose score is below this share of the best one's are left out."""


def discover(content: RegistryContent, query: Mapping[str, str]) -> dict[str, Any]:
    """The agent that matches best, its matching skills, and other matching agents.

    Raises:
        RegistryRefusedError: there is no query.
    """
    text = query.get("query", "").strip()
    if not 0 < len(text) <= MAX_QUERY_CHARS or set(query) != {"query"}:
        message = f"must be the only parameter, of 1 to {MAX_QUERY_CHARS} characters"
        raise RegistryRefusedError(422, [{"loc": ["query", "query"], "msg": message, "type": "value_error"}])
    agents, skills = content.tables(Kind.AGENT), content.tables(Kind.SKILL)
    places = {agent_id: entry for agent_id, entry in agents.items() if entry["is_discoverable"]}
    ranked = _ranked(text, {each: _agent_text(entry, skills) for each, entry in places.items()})
    if not ranked:
        return {"query": text, "message": "No matching agent found"}
    best = ranked[0][0]
    own = {each: skills[each] for each in places[best]["skill_ids"]}
    matching = [each for each, _ in _ranked(text, {each: _skill_text(skill) for each, skill in own.items()})]
    others = [
        {"agent_id": each, "name": places[each]["name"], "description": places[each]["description"]}
        for each, score in ranked[1 : MAX_MATCHES + 1]
        if score >= _WEAK * ranked[0][1]
    ]
    return {
        "query": text,
        "recommended_agent": content.view(Kind.AGENT, content.newest(Kind.AGENT, best)),
        "matching_skills": [
            {"id": each, "name": own[each]["name"], "description": own[each]["description"]} for each in matching
        ],
        "other_agents": others,
    }


def _ranked(query: str, texts: Mapping[str, tuple[str, str]]) -> list[tuple[str, float]]:
    """The ids of the matches with their scores, best first. ``texts`` has names and descriptions by id."""
    infos = [(entry_id, ToolInfo(name, description, {}, _ANY)) for entry_id, (name, description) in texts.items()]
    ids = {id(info): entry_id for entry_id, info in infos}
    ranked = rank_tools(query, [RankedTool(info, "") for _, info in infos])
    return [(ids[id(info)], score) for info, score in ranked]


def _agent_text(entry: Mapping[str, Any], skills: Mapping[str, Mapping[str, Any]]) -> tuple[str, str]:
    parts = [entry["description"], " ".join(entry["tags"])]
    parts += [" ".join(_skill_text(skills[each])) for each in entry["skill_ids"] if each in skills]
    return entry["name"], ".\n".join(filter(None, parts))


def _skill_text(skill: Mapping[str, Any]) -> tuple[str, str]:
    return skill["name"], ".\n".join([skill["description"], " ".join(skill["tags"]), *skill["examples"]])
