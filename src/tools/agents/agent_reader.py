"""Reads agents from tables: ``[agents.NAME]`` of toold.toml, one file per agent, or a registry's JSON. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ...protocol.name_suggestions import close_names, did_you_mean
from ..setting_messages import setting_message
from ..tool_definition import TOOL_NAME
from .agent_definition import Agent, Role, ToolGrant
from .agent_skill import AgentSkill
from .registry_record import from_registry, is_registry_record

_FORMER_FIELDS: Final[Mapping[str, str]] = {
    "prompt_inline": "prompt",
    "instruction": "prompt",
    "phoenix_prompt_name": "prompt_ref",
}
"""Maps the names of a role's fields in toold's predecessor to today's names."""
_FORMER_GRANT_FIELDS: Final[Mapping[str, str]] = {
    "id": "name",
    "tool_id": "name",
    "mcp": "source",
    "mcp_server": "source",
}
_IGNORED_GRANT_FIELDS: Final = frozenset({"provider"})
"""Fields that are ignored, because a tool is found by its name."""


class FieldProblem(NamedTuple):
    """The problem of a field."""

    path: tuple[str | int, ...]
    """The path to the field; empty if the problem concerns the whole definition."""
    message: str
    """The text that follows the name of the field."""


class AgentDefinitionError(ValueError):
    """An agent's definition is invalid; the message names the agent and the field."""

    def __init__(self, message: str, fields: Iterable[FieldProblem] = ()) -> None:
        super().__init__(message)
        self.fields = tuple(fields) or (FieldProblem((), message),)


def read_agents(tables: object) -> dict[str, Agent]:
    """Returns the agents by name, from the tables of ``[agents.NAME]``.

    Raises:
        AgentDefinitionError: an agent is invalid, or two agents delegate to each other.
    """
    if not isinstance(tables, Mapping):
        raise AgentDefinitionError(
            "must be set in toold.toml, as tables [agents.NAME] with description and prompt or roles"
        )
    agents = {str(name): read_agent(str(name), table) for name, table in tables.items()}
    check_cycles(agents)
    return agents


def read_agent(name: str, table: object) -> Agent:
    """Returns the agent that this table defines.

    Raises:
        AgentDefinitionError: the name or a field is invalid.
    """
    if not TOOL_NAME.fullmatch(name):
        raise AgentDefinitionError(f"{name[:64]!r} is not a name; an agent's name is 1 to 64 of A-Za-z0-9_-")
    if isinstance(table, Agent):
        return table
    if not isinstance(table, Mapping):
        raise AgentDefinitionError(f"{name} must be a table with description and prompt or roles")
    if is_registry_record(table):
        table = from_registry(table)
        if table.get("execution_type") == "custom":
            message = "a registry's record cannot name code ('custom')"
            problem = FieldProblem(("execution_type",), message)
            raise AgentDefinitionError(f"{name}: execution_type: {message}", [problem])
    try:
        return Agent.model_validate({**_renamed(table), "name": name})
    except ValidationError as error:
        single = not table.get("roles")
        problems = {_problem(each, single=single): _field_problem(each, single=single) for each in _relevant(error)}
    raise AgentDefinitionError("; ".join(f"{name}: {problem}" for problem in problems), problems.values())


def check_cycles(agents: Mapping[str, Agent]) -> None:
    """Checks that no agent calls itself, directly or through others.

    Raises:
        AgentDefinitionError: an agent calls itself; the message shows the cycle.
    """
    calls = {name: [called for role in agent.roles for called in role.agents] for name, agent in agents.items()}
    done: set[str] = set()
    for start in calls:
        _visit(start, (), calls, done)


def _visit(name: str, path: tuple[str, ...], calls: Mapping[str, list[str]], done: set[str]) -> None:
    if name in path:
        cycle = " → ".join((*path[path.index(name) :], name))
        raise AgentDefinitionError(f"{name}: agents: call each other in a cycle: {cycle}")
    if name in done:
        return
    for called in calls.get(name, ()):
        _visit(called, (*path, name), calls, done)
    done.add(name)


def _renamed(table: Mapping[str, Any]) -> dict[str, Any]:
    """The table in a uniform form: with today's names of fields, and with grants as tables."""
    renamed = _role(table)
    roles = renamed.get("roles")
    if isinstance(roles, Mapping):
        roles = [{"name": name, **role} if isinstance(role, Mapping) else role for name, role in roles.items()]
    if isinstance(roles, list | tuple):
        renamed["roles"] = [_role(role) if isinstance(role, Mapping) else role for role in roles]
    return renamed


def _role(table: Mapping[str, Any]) -> dict[str, Any]:
    role = {_FORMER_FIELDS.get(field, field): value for field, value in table.items()}
    tools = role.get("tools")
    if isinstance(tools, list | tuple):
        role["tools"] = [_grant(tool) for tool in tools]
    return role


def _grant(tool: Any) -> Any:
    if isinstance(tool, str):
        return {"name": tool}
    if not isinstance(tool, Mapping):
        return tool
    renamed = {_FORMER_GRANT_FIELDS.get(field, field): value for field, value in tool.items() if value is not None}
    grant = {field: value for field, value in renamed.items() if field not in _IGNORED_GRANT_FIELDS}
    if {"name", "source"} <= grant.keys() and "include" not in grant:  # the predecessor's form: a tool and its server
        grant["include"] = [grant.pop("name")]
    return grant


def _relevant(error: ValidationError) -> list[ErrorDetails]:
    details = error.errors(include_url=False, include_input=False)
    # The list omits an invalid role, and so may also be reported as too short.
    return [each for each in details if each["type"] != "too_short" or each["loc"] != ("roles",)] or details


def _problem(details: ErrorDetails, *, single: bool) -> str:
    """A sentence about a field; the fields of a ``single`` role are in the agent's table."""
    path = _path(details, single=single)
    place = ".".join(str(step) for step in path)
    if details["type"] == "agent":  # the message begins with the field
        return ": ".join(filter(None, (place, setting_message(details))))
    return f"{place} {_message(details, path, single=single)}"


def _field_problem(details: ErrorDetails, *, single: bool) -> FieldProblem:
    path = _path(details, single=single)
    if details["type"] == "agent":
        return FieldProblem((*path, *details["ctx"]["field"].split(".")), details["ctx"]["message"])
    return FieldProblem(path, _message(details, path, single=single))


def _path(details: ErrorDetails, *, single: bool) -> tuple[str | int, ...]:
    return details["loc"][2:] if single and details["loc"][:2] == ("roles", 0) else details["loc"]


def _message(details: ErrorDetails, path: tuple[str | int, ...], *, single: bool) -> str:
    if details["type"] == "missing":
        return "is required" if path != ("roles",) else "is required, or prompt for an agent of one role"
    if details["type"] == "extra_forbidden":
        known = _fields_at(path, single=single)
        hint = did_you_mean(close_names(str(details["loc"][-1]), known, n=1))
        return f"is not a field; {hint or 'fields: ' + ', '.join(known)}"
    return setting_message(details)


def _fields_at(path: tuple[str | int, ...], *, single: bool) -> list[str]:
    model: type[BaseModel] = Agent
    for field, part in (("tools", ToolGrant), ("roles", Role), ("skills", AgentSkill)):
        if field in path[:-1]:
            model = part
            break
    fields = [*model.model_fields, *(Role.model_fields if single and model is Agent else ())]
    return [field for field in dict.fromkeys(fields) if model is not Agent or field != "name"]
