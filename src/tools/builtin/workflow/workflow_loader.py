"""From TOML files to workflow tools: the daemon's own, and those of a directory of the operator's."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ....protocol.name_suggestions import close_names, did_you_mean
from ...tool_definition import Tool
from .workflow_definition import Argument, Expected, Expert, Guidance, ResultField, WorkflowDefinition
from .workflow_tool import workflow_tool

SUFFIX: Final = ".toml"
MAX_PROBLEMS: Final = 5
"""Of one file, told at once."""

_TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PARTS: Final[Mapping[object, type[BaseModel]]] = {
    "arguments": Argument,
    "guidance": Guidance,
    "expected": Expected,
    "expert": Expert,
    "result": ResultField,
}
_KINDS: Final[Mapping[str, str]] = {
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "string_too_short": "must not be empty",
    "too_short": "must have one entry or more",
}


class DefinitionError(ValueError):
    """A definition cannot be used; the message says which keys are wrong, and what to write."""


@cache
def own_workflows() -> tuple[Tool, ...]:
    """The built-in workflow tools, one per file in ``definitions``."""
    found = (files(__package__) / "definitions").iterdir()
    own = sorted((file for file in found if file.name.endswith(SUFFIX)), key=lambda file: file.name)
    return tuple(workflow_tool(read_definition(file)) for file in own)


def workflows_in(directory: Path) -> tuple[list[Tool], list[str]]:
    """The tools that the files of a directory define, and for each file that cannot be used a sentence that says
    why.
    """
    tools: list[Tool] = []
    problems: list[str] = []
    try:
        found = sorted(path for path in directory.iterdir() if path.suffix == SUFFIX)
    except OSError as error:
        return [], [f"the workflow tools of {directory} were left out: the directory cannot be read ({error.strerror})"]
    for path in found:
        try:
            tools.append(workflow_tool(read_definition(path), source=str(path)))
        except DefinitionError as error:
            problems.append(f"the workflow tool {path} was left out: {error}")
    return tools, problems


def read_definition(file: Traversable) -> WorkflowDefinition:
    """The definition that a file has.

    Raises:
        DefinitionError: it has none that can be used.
    """
    name = file.name.removesuffix(SUFFIX)
    if not _TOOL_NAME.fullmatch(name):
        raise DefinitionError("the file's name names the tool: 1–64 of A-Z, a-z, 0-9, _ and - before .toml")
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DefinitionError(f"it cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise DefinitionError("it must be UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        raise DefinitionError(f"it is not valid TOML: {error}") from None
    if "name" in table:
        raise DefinitionError("name: leave it out, the file's name names the tool")
    try:
        return WorkflowDefinition.model_validate({**table, "name": name})
    except ValidationError as error:
        problems = error.errors(include_url=False)
    told = [_sentence(details) for details in problems[:MAX_PROBLEMS]]
    more = [f"and {len(problems) - MAX_PROBLEMS} more"] if len(problems) > MAX_PROBLEMS else []
    raise DefinitionError("; ".join([*told, *more]))


def _sentence(details: ErrorDetails) -> str:
    """What is wrong, and where: ``guidance.2.confidence.0: must be …``."""
    place = ".".join(map(str, details["loc"]))
    context: Mapping[str, Any] = details.get("ctx", {})
    match details["type"]:
        case "missing":
            said = "is missing"
        case "extra_forbidden":
            known = _keys_beside(details["loc"])
            said = f"is no key; {did_you_mean(close_names(str(details['loc'][-1]), known, n=1)) or _list(known)}"
        case "literal_error":
            options = re.findall(r"'([^']+)'", str(context["expected"]))
            meant = did_you_mean(close_names(str(details["input"]), options, n=1))
            said = f"must be {', '.join(options)}" + (f"; {meant}" if meant else "")
        case "value_error":
            said = str(context["error"])
        case kind:
            said = _KINDS.get(kind, details["msg"])
    return f"{place}: {said}" if place else said


def _keys_beside(place: tuple[int | str, ...]) -> list[str]:
    """The keys of the table that a surplus one stands in."""
    part = _PARTS.get(place[0], WorkflowDefinition) if len(place) > 1 else WorkflowDefinition
    return [key for key in part.model_fields if key != "name"]


def _list(keys: list[str]) -> str:
    return f"there are {', '.join(keys)}"
