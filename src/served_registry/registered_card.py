"""Converts an agent to the form in which the registry returns it, and back. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..tools import names_no_tools
from .registry_entries import RUNTIME_FIELDS
from .registry_problem import RegistryRefusedError, field_problem

Table = Mapping[str, Any]

_MODES: Final = {"default_input_modes": "input_modes", "default_output_modes": "output_modes"}
_CAPABILITIES: Final = ("streaming", "push_notifications", "state_transition", "artifacts", "inline_tool_calls")
_REFERENCES: Final = {"skills": "skill_ids", "tools": "tool_ids", "rag_configs": "rag_ids"}
_PLAIN: Final = (
    *("owner", "team", "tags", "is_public", "is_discoverable", "requires_auth", "rate_limit", "metadata"),
    *("deployment_status", "cloud_run_url", "cloud_run_service"),
)
_READ_ONLY: Final = frozenset({"agent_id", "created_at", "updated_at"})


def agent_card(agent_id: str, entry: Table, times: Table, known: Mapping[str, Mapping[str, Table]]) -> dict[str, Any]:
    """The agent in the form that the registry returns.

    ``known`` has the skills, tools and rag configurations by field and id.
    """
    return {
        "agent_id": agent_id,
        **{field: entry[field] for field in ("name", "description", "url", "version", "agent_type")},
        "protocol_version": entry["protocol_version"],
        **{field: entry[flat] for field, flat in _MODES.items()},
        "capabilities": {field: entry[field] for field in _CAPABILITIES},
        **{field: _known(known[field], entry[flat]) for field, flat in _REFERENCES.items()},
        **{field: entry[field] for field in _PLAIN},
        **times,
        "runtime_config": runtime_config(entry),
    }


def _known(entries: Mapping[str, Table], ids: Sequence[str]) -> list[Table]:
    return [entries[each] for each in ids if each in entries]


def runtime_config(entry: Table) -> dict[str, Any] | None:
    """The runtime configuration as stored in the entry, or None."""
    if entry["execution_type"] is None:
        return None
    return {field: entry[field] for field in RUNTIME_FIELDS}


def flat_fields(body: Table) -> dict[str, Any]:
    """Returns the flat fields of an agent. The body may have them flat, as the predecessor's clients send them, or
    nested, as the registry returns them, so that a client can modify an answer and send it back.

    Raises:
        RegistryRefusedError: a field is in both forms with different values.
    """
    flat = {field: value for field, value in body.items() if field not in _READ_ONLY}
    moved: dict[str, tuple[str, Any]] = {}
    for field, name in _MODES.items():
        if field in flat:
            moved[name] = (field, flat.pop(field))
    for field, name in _REFERENCES.items():
        value = flat.get(field)
        if isinstance(value, list):
            ids = [each.get("id") if isinstance(each, Mapping) else each for each in flat.pop(field)]
            moved[name] = (field, ids)
    for group in ("capabilities", "runtime_config"):
        value = flat.get(group)
        if value is None:
            flat.pop(group, None)
        elif isinstance(value, Mapping):
            moved |= {name: (f"{group}.{name}", each) for name, each in flat.pop(group).items()}
    problems = [
        field_problem((name,), f"is also in the body as {place}, with another value; send one of them")
        for name, (place, value) in moved.items()
        if name in flat and flat[name] != value
    ]
    if problems:
        raise RegistryRefusedError(422, problems)
    return flat | {name: value for name, (_, value) in moved.items()}


def runtime_record(agent_id: str, entry: Table, tools: Mapping[str, Table]) -> dict[str, Any] | None:
    """The agent's ``runtime_config`` with the tools that its roles really have; None if it has no roles.

    A role that names no tools has the agent's. Inactive tools of the registry are left out. A tool of an MCP server is
    listed under its name at that server.
    """
    config = runtime_config(entry)
    if config is None or not config["roles"]:
        return None
    own = [{"id": each} for each in entry["tool_ids"]]
    roles = [
        {**role, "tools": _grants(own if names_no_tools(role["tools"]) else role["tools"], tools)}
        for role in config["roles"]
    ]
    return {
        "agent_id": agent_id,
        "name": entry["name"],
        "description": entry["description"],
        "url": entry["url"],
        "runtime_config": {**config, "roles": roles},
    }


def hosted_record(agent_id: str, entry: Table, known: Mapping[str, Mapping[str, Table]]) -> dict[str, Any] | None:
    """Everything that this daemon needs to host the agent; None if it has no roles. ``known`` is as for
    ``agent_card``."""
    record = runtime_record(agent_id, entry, known["tools"])
    if record is None:
        return None
    named = {field: _known(known[field], entry[_REFERENCES[field]]) for field in ("skills", "rag_configs")}
    return {**record, "is_public": entry["is_public"], **named}


def _grants(grants: Sequence[Any], tools: Mapping[str, Table]) -> list[Any]:
    granted = []
    for grant in grants:
        name = grant
        if isinstance(grant, Mapping):
            name = grant.get("id") or grant.get("tool_id") or grant.get("name")
        tool = tools.get(name) if isinstance(name, str) else None
        if tool is None:
            granted.append(grant)
        elif tool["active"] and (not isinstance(grant, Mapping) or grant.get("active", True)):
            granted.append(_real_grant(tool))
    return granted


def _real_grant(tool: Table) -> dict[str, Any]:
    """The daemon's name of the tool: its id, or its name at its MCP server if that server is a source of the daemon."""
    name, server = tool["mcp_tool_name"] or tool["id"], tool["mcp_server"]
    return {"name": name} if server is None else {"source": server, "include": [name, f"{server}_{name}"]}


def mcp_servers_of(entry: Table, tools: Mapping[str, Table]) -> list[str]:
    """The URLs of the MCP servers that the agent names, and of the servers of its active tools."""
    used = [tools[each] for each in entry["tool_ids"] if each in tools]
    urls = [tool["mcp_server_url"] for tool in used if tool["active"] and tool["mcp_server_url"]]
    return list(dict.fromkeys([*entry["mcp_servers"], *urls]))
