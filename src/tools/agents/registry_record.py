"""Converts an agent from the predecessor's registry, with its ``runtime_config``, to today's fields. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from .agent_skill import MAX_EXAMPLES, MAX_SKILL_CHARS, MAX_SKILLS, MAX_TAGS, MAX_WORD_CHARS

_MISSING_TOOLS: Final = frozenset({"Bash", "Read", "Grep", "Glob"})
"""The tools that a registry lists for every role by default, although its agents never had them."""
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
    """The record as a table of an agent. Names of roles become identifiers; empty fields are omitted. Each role may
    search the documents of the record's rag configurations.

    Other fields, such as modes and the permission mode, are ignored.
    """
    config = record["runtime_config"]
    described = record.get("description") or record.get("name") or "An agent of a registry."
    roles = config.get("roles")
    collections = _collections(record)
    searched = {"optional_knowledge": collections} if collections else {}
    table: dict[str, Any] = {
        "description": described,
        "roles": [_role(role, searched) for role in roles] if isinstance(roles, list | tuple) else roles,
        "public": record.get("is_public") is True,
        "skills": _skills(record.get("skills")),
    }
    table |= {field: config[field] for field in _KEPT if config.get(field) is not None}
    for field in _REFERENCES:
        if config.get(field):
            table[field] = _identifier(config[field])
    for field in _REFERENCE_LISTS:
        if names := config.get(field):
            table[field] = [_identifier(name) for name in names] if isinstance(names, list | tuple) else names
    return table


def _collections(record: Mapping[str, Any]) -> list[str]:
    """The collections of the rag configurations: ``knowledge_base_id``, or else the configuration's id. A configuration
    is an object or only an id.
    """
    names: dict[str, None] = {}
    for field in ("rag_configs", "rag_ids"):
        for config in _items(record.get(field)):
            name = config
            if isinstance(config, Mapping):
                name = config.get("knowledge_base_id") or config.get("id")
            if isinstance(name, str) and 0 < len(name) <= MAX_WORD_CHARS:
                names[name] = None
    return list(names)


def _skills(skills: object) -> list[dict[str, Any]]:
    """The skills for the agent's card, without duplicates. They are truncated to the limits of a card, because a long
    text about a skill must not prevent an agent from running.
    """
    read: dict[str, dict[str, Any]] = {}
    for skill in _items(skills):
        table = skill if isinstance(skill, Mapping) else {}
        skill_id = _text(table.get("id"), MAX_WORD_CHARS)
        if not skill_id or skill_id in read or len(read) == MAX_SKILLS:
            continue
        name = _text(table.get("name"), MAX_WORD_CHARS) or skill_id
        read[skill_id] = {
            "id": skill_id,
            "name": name,
            "description": _text(table.get("description"), MAX_SKILL_CHARS) or name,
            "examples": _texts(table.get("examples"), MAX_EXAMPLES, MAX_SKILL_CHARS),
        }
        if tags := _texts(table.get("tags"), MAX_TAGS, MAX_WORD_CHARS):
            read[skill_id]["tags"] = tags
    return list(read.values())


def _items(value: object) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else ()


def _text(value: object, most: int) -> str:
    return value[:most] if isinstance(value, str) else ""


def _texts(values: object, most: int, most_chars: int) -> list[str]:
    return [text for value in _items(values) if (text := _text(value, most_chars))][:most]


def _role(role: Any, more: Mapping[str, Any]) -> Any:
    if not isinstance(role, Mapping):
        return role
    table = {**{field: role[field] for field in _ROLE_FIELDS if role.get(field)}, **more}
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
