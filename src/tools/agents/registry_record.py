"""An agent as the predecessor's registry answers it, with ``runtime_config``, in today's fields. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

_MISSING_TOOLS: Final = frozenset({"Bash", "Read", "Grep", "Glob"})
"""The tools that a registry gives every role by default; its agents never had them."""
_REFERENCES: Final = ("aggregator_role", "coordinator_role", "hub_role")
_REFERENCE_LISTS: Final = ("parallel_roles", "worker_roles", "spoke_roles")
_KEPT: Final = ("execution_type", "chain_output", "max_iterations", "stop_when")
_ROLE_FIELDS: Final = (
    "prompt_inline",
    "instruction",
    "prompt_ref",
    "phoenix_prompt_name",
    "tools",
    "max_turns",
    "model",
    "metadata",
    "description",
    "agents",
    "prompt_tag",
    "approve",
    "ask",
    "answer_schema",
)


def is_registry_record(table: Mapping[str, Any]) -> bool:
    """Whether this is a registry's record of an agent."""
    return isinstance(table.get("runtime_config"), Mapping)


def names_no_tools(tools: Iterable[Any]) -> bool:
    """Whether these are only the registry's default tools."""
    return all(isinstance(tool, str) and tool in _MISSING_TOOLS for tool in tools)


def from_registry(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record as a table of an agent. Names of roles become identifiers; empty fields are left out.

    Other fields, such as cards, skills and the permission mode, are ignored.
    """
    config = record["runtime_config"]
    described = record.get("description") or record.get("name") or "An agent of a registry."
    roles = config.get("roles")
    table: dict[str, Any] = {
        "description": described,
        "roles": [_role(role) for role in roles] if isinstance(roles, list | tuple) else roles,
    }
    table |= {field: config[field] for field in _KEPT if config.get(field) is not None}
    for field in _REFERENCES:
        if config.get(field):
            table[field] = _identifier(config[field])
    for field in _REFERENCE_LISTS:
        if names := config.get(field):
            table[field] = [_identifier(name) for name in names] if isinstance(names, list | tuple) else names
    return table


def _role(role: Any) -> Any:
    if not isinstance(role, Mapping):
        return role
    table = {field: role[field] for field in _ROLE_FIELDS if role.get(field)}
    if workers := role.get("workers"):
        table["workers"] = [_identifier(name) for name in workers] if isinstance(workers, list | tuple) else workers
    tools = table.get("tools")
    if isinstance(tools, list):
        table["tools"] = [tool for tool in tools if not (isinstance(tool, str) and tool in _MISSING_TOOLS)]
    return {"name": _identifier(role.get("name")), **table}


def _identifier(name: Any) -> Any:
    """``Legal Expert`` → ``Legal_Expert``; names are part of call ids."""
    if not isinstance(name, str):
        return name
    replaced = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:40]
    return replaced if replaced[:1].isalpha() else f"role_{replaced}"[:40]
