"""Loads workflow tools from TOML files: those that ship with toold, and those in the operator's directory."""

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
from ...setting_messages import setting_message
from ...tool_definition import Tool
from .workflow_definition import Argument, Expected, Expert, FormerMeaning, Guidance, ResultField, WorkflowDefinition
from .workflow_tool import workflow_tool

SUFFIX: Final = ".toml"
MAX_PROBLEMS: Final = 5
"""The maximum number of problems that are reported per file."""

_TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PARTS: Final[Mapping[object, type[BaseModel]]] = {
    "arguments": Argument,
    "former_arguments": FormerMeaning,
    "guidance": Guidance,
    "expected": Expected,
    "expert": Expert,
    "result": ResultField,
}


class DefinitionError(ValueError):
    """A definition is invalid; the message names the wrong keys and the fix."""


@cache
def own_workflows() -> tuple[Tool, ...]:
    """Returns the workflow tools that ship with toold, one per file in ``definitions``."""
    entries = (files(__package__) / "definitions").iterdir()
    definitions = sorted((file for file in entries if file.name.endswith(SUFFIX)), key=lambda file: file.name)
    return tuple(workflow_tool(read_definition(file)) for file in definitions)


def workflows_in(directory: Path) -> tuple[list[Tool], list[str]]:
    """Returns the tools defined in a directory, and one message per invalid file."""
    tools: list[Tool] = []
    problems: list[str] = []
    try:
        paths = sorted(path for path in directory.iterdir() if path.suffix == SUFFIX)
    except OSError as error:
        return [], [f"workflow tools in {directory} were not loaded: the directory cannot be read ({error.strerror})"]
    for path in paths:
        try:
            tools.append(workflow_tool(read_definition(path), source=str(path)))
        except DefinitionError as error:
            problems.append(f"workflow tool {path} was not loaded: {error}")
    return tools, problems


def read_definition(file: Traversable) -> WorkflowDefinition:
    """Reads the definition in a file.

    Raises:
        DefinitionError: the file has no valid definition.
    """
    name = file.name.removesuffix(SUFFIX)
    if not _TOOL_NAME.fullmatch(name):
        raise DefinitionError("the file name is the tool's name: 1-64 of A-Z, a-z, 0-9, _ and - before .toml")
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DefinitionError(f"the file cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise DefinitionError("the file is not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        raise DefinitionError(f"the file is not valid TOML: {error}") from None
    if "name" in table:
        raise DefinitionError("name: omit it; the file name is the tool's name")
    try:
        return WorkflowDefinition.model_validate({**table, "name": name})
    except ValidationError as error:
        problems = error.errors(include_url=False)
    messages = [_message(details) for details in problems[:MAX_PROBLEMS]]
    more = [f"and {len(problems) - MAX_PROBLEMS} more"] if len(problems) > MAX_PROBLEMS else []
    raise DefinitionError("; ".join([*messages, *more]))


def _message(details: ErrorDetails) -> str:
    """Returns place and problem: ``guidance.2.confidence.0: must be …``."""
    place = ".".join(map(str, details["loc"]))
    context: Mapping[str, Any] = details.get("ctx", {})
    match details["type"]:
        case "missing":
            problem = "is missing"
        case "extra_forbidden":
            known = _known_keys(details["loc"])
            problem = f"unknown key; {did_you_mean(close_names(str(details['loc'][-1]), known, n=1)) or _list(known)}"
        case "value_error":
            problem = str(context["error"])
        case _:
            problem = setting_message(details)
    return f"{place}: {problem}" if place else problem


def _known_keys(place: tuple[int | str, ...]) -> list[str]:
    """Returns the valid keys of the table that contains an unknown key."""
    part = _PARTS.get(place[0], WorkflowDefinition) if len(place) > 1 else WorkflowDefinition
    return [key for key in part.model_fields if key != "name"]


def _list(keys: list[str]) -> str:
    return f"known keys: {', '.join(keys)}"
