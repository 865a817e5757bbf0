"""Checks new entries of the served registry, with the models and with the code that reads agents. Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec
from pydantic import BaseModel, ValidationError

from ..agent_registry import tool_name_of
from ..tools import MAX_ROLES, AgentDefinitionError, FieldProblem, read_agent
from .registered_card import flat_fields, runtime_record
from .registry_entries import MAX_ITEMS, RoleEntry
from .registry_kinds import NAMES, Kind
from .registry_problem import RegistryRefusedError, field_problem, invalid_body, invalid_fields

_PREDECESSOR_FIELDS = ("prompt_inline", "instruction", "phoenix_prompt_name")
_OPTIONAL_OF_ROLES = tuple(name for name, field in RoleEntry.model_fields.items() if field.default is None)[3:]


def checked_entry(kind: Kind, body: object, tools: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the entry that a body describes, with all fields. ``tools`` are those of the registry, by id.

    Raises:
        RegistryRefusedError: it is invalid.
    """
    model = NAMES[kind].model
    if not isinstance(body, dict):
        raise RegistryRefusedError(422, [field_problem((), "must be a JSON object", "model_type")])
    table = _normal(kind, body)
    _check_lengths(table)
    try:
        entry = model.model_validate(table)
    except ValidationError as error:
        raise invalid_body(error, model) from None
    checked = _dumped(entry)
    if kind is Kind.AGENT:
        _check_agent(checked, tools)
    if kind is Kind.ARCHITECTURE:
        _check_architecture(checked)
    return checked


def _check_lengths(table: Mapping[str, Any]) -> None:
    """Refuses a body with more fields, or a list with more items, than any entry may have. Validating thousands of
    invalid fields would hold the interpreter's lock, and so block the event loop, for a fraction of a second.

    Raises:
        RegistryRefusedError: the body has too many.
    """
    lengths = {field: len(value) for field, value in table.items() if isinstance(value, list)}
    problems = [
        field_problem((field,), f"must have at most {most:,} items, and has {lengths[field]:,}")
        for field in list(lengths)
        if lengths[field] > (most := MAX_ROLES if field == "roles" else MAX_ITEMS)
    ]
    if len(table) > MAX_ITEMS:
        problems = [field_problem((), f"must have at most {MAX_ITEMS:,} fields, and has {len(table):,}")]
    if problems:
        raise RegistryRefusedError(422, problems)


def merged(current: Mapping[str, Any], patch: object) -> dict[str, Any]:
    """The fields of an entry after a JSON merge patch (RFC 7396), one level deep; null sets the default.

    Raises:
        RegistryRefusedError: the patch is not an object.
    """
    if not isinstance(patch, dict):
        raise RegistryRefusedError(422, [field_problem((), "must be a JSON object", "model_type")])
    changed = {**current, **patch}
    return {field: value for field, value in changed.items() if value is not None or field not in patch}


def normal_patch(kind: Kind, patch: object) -> object:
    """A patch with its fields as in a body."""
    return _normal(kind, patch) if isinstance(patch, dict) else patch


def _normal(kind: Kind, body: dict[str, Any]) -> dict[str, Any]:
    if kind is Kind.AGENT:
        return flat_fields(body)
    dropped = {Kind.ARCHITECTURE: {"architecture_id"}, Kind.PROMPT: {"version", "created_at", "updated_at"}}
    table = {field: value for field, value in body.items() if field not in dropped.get(kind, ())}
    if kind is Kind.PROMPT and "name" in table:
        name = table.pop("name")
        table.setdefault("id", name)
    return table


def _dumped(entry: BaseModel) -> dict[str, Any]:
    try:
        dumped = entry.model_dump(mode="json", by_alias=True)
        msgspec.json.encode(dumped)
    except (
        ValueError,
        RecursionError,
    ):  # pydantic raises the first one for values nested too deeply and for surrogates
        message = "cannot be stored as JSON: it is nested too deeply, or has half of a surrogate pair"
        raise RegistryRefusedError(422, [field_problem((), message)]) from None
    for role in dumped.get("roles", ()):
        for field in _OPTIONAL_OF_ROLES:
            if role[field] is None:
                del role[field]
    if dumped.get("execution_type", "") is None and dumped["roles"]:
        dumped["execution_type"] = "single"
    return dumped


def _check_agent(entry: Mapping[str, Any], tools: Mapping[str, Mapping[str, Any]]) -> None:
    record = runtime_record("", entry, tools)
    if record is None:
        return
    try:
        read_agent(tool_name_of(entry["name"], "agent"), record)
    except AgentDefinitionError as error:
        problems = [FieldProblem(_written_path(problem.path, entry), problem.message) for problem in error.fields]
        raise invalid_fields(problems) from None


def _written_path(path: tuple[str | int, ...], entry: Mapping[str, Any]) -> tuple[str | int, ...]:
    """The path, with the body's name for the prompt of a role."""
    match path:
        case ("roles", int(index), "prompt" | "prompt_ref", *_):
            role = entry["roles"][index]
            names = [name for name in _PREDECESSOR_FIELDS if role.get(name)]
            return ("roles", index, names[0]) if names and path[2] == "prompt" else path
    return path


def _check_architecture(entry: Mapping[str, Any]) -> None:
    ids = [member["agent_id"] for member in entry["agents"]]
    problems = [
        FieldProblem(("agents", index, "agent_id"), f"names {each!r} a second time")
        for index, each in enumerate(ids)
        if each in ids[:index]
    ]
    if entry["connections"] and entry["pattern"] != "hierarchical":
        problems.append(FieldProblem(("connections",), f"belong to pattern hierarchical, not {entry['pattern']}"))
    if entry["stop_when"] is not None and entry["pattern"] != "loop":
        problems.append(FieldProblem(("stop_when",), f"belongs to pattern loop, not {entry['pattern']}"))
    if entry["pattern"] in {"coordinator", "hub-spoke", "hierarchical"} and len(ids) < 2:
        problems.append(FieldProblem(("agents",), f"must be two or more for pattern {entry['pattern']}"))
    problems += _connection_problems(entry, ids)
    if problems:
        raise invalid_fields(problems)


def _connection_problems(entry: Mapping[str, Any], ids: list[str]) -> list[FieldProblem]:
    """Connections make a tree in which each agent has one place."""
    problems, parents = [], dict[str, str]()
    for index, connection in enumerate(entry["connections"]):
        for end in ("from", "to"):
            if connection[end] not in ids:
                path = ("connections", index, end)
                problems.append(FieldProblem(path, f"names {connection[end]!r}, which is not in agents"))
        if connection["to"] in parents or connection["to"] == connection["from"]:
            why = f"{connection['to']!r} must have one other agent above it"
            problems.append(FieldProblem(("connections", index, "to"), why))
        parents[connection["to"]] = connection["from"]
    if entry["connections"] and not problems:
        roots = [each for each in ids if each not in parents]
        if len(roots) != 1:
            named = ", ".join(map(repr, roots)) or "none"
            why = f"must lead from one agent to all others; those without one above them are {named}"
            problems.append(FieldProblem(("connections",), why))
    return problems
