"""A call's arguments → what the tool takes, or an error that names every field that is wrong. Pure."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ..protocol.error_codes import InvalidArgumentsError
from .json_schema import JsonSchema, takes_long
from .tool_definition import Tool
from .validation_errors import MAX_SURPLUS_FIELDS, ValidationErrors, given, missing, surplus, write_only

_TYPE_ERRORS: Final[Mapping[str, str]] = {
    "string_type": "a string",
    "int_type": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "none_required": "null",
    "list_type": "an array",
    "tuple_type": "an array",
    "set_type": "an array",
    "frozen_set_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "dataclass_type": "an object",
}
"""pydantic's words where they name Python's types or classes, in JSON's words."""

_VALUE_ERRORS: Final = frozenset(
    {"literal_error", "enum", "greater_than", "greater_than_equal", "less_than", "less_than_equal", "multiple_of"}
)
"""Errors of a value of the right type, where it helps to see the value again."""

_SUBJECT: Final = re.compile(r"^[A-Z][a-z]+ (?=should )")
"""``List should have …``, ``Input should be …``: the field's name takes its place."""


def bind(tool: Tool, arguments: dict[str, Any]) -> BaseModel | dict[str, Any]:
    """The tool's arguments, checked: an object of its model, or the plain dict where it has a JSON Schema.

    Many values by a JSON Schema take long to check: that is done when the call runs, off the event loop.

    Raises:
        InvalidArgumentsError: the message names every wrong, missing and surplus argument (the first eight of
            them); ``details.fields`` has each field's path, such as ``files.2``, with what is wrong with it.
    """
    _refuse_bound(tool, arguments)
    if isinstance(tool.arguments, JsonSchema):
        if not takes_long(arguments):
            tool.arguments.check(tool.name, arguments)
        return arguments
    return _bind_model(tool, tool.arguments, arguments)


def _refuse_bound(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Raise for an attempt to set what is bound.

    Raises:
        InvalidArgumentsError: it names the arguments.
    """
    tried = [name for name in tool.bound if name in arguments]
    if tried:
        wrong = "is not the caller's to set: the daemon's operator has; leave it out"
        told = "; ".join(f"{name} {wrong}" for name in tried)
        raise InvalidArgumentsError(f"{tool.name}: {told}.", details={"fields": dict.fromkeys(tried, wrong)})


def _bind_model(tool: Tool, model: type[BaseModel], arguments: dict[str, Any]) -> BaseModel:
    if len(arguments) > tool.most_fields:
        arguments = _bounded(tool, arguments)
    arguments = {**arguments, **tool.bound} if tool.bound else arguments
    try:
        return model.model_validate(arguments)
    except ValidationError as error:
        in_python = error
    # What JSON has no type for (dates, enums, tuples) is strict in Python and open in JSON: only JSON's word counts.
    try:
        return model.model_validate_json(json.dumps(arguments))
    except ValidationError as error:
        in_json = error
    except (RecursionError, ValueError):  # nested too deeply, or a number of more digits than Python writes
        in_json = in_python
    errors = in_json.errors(include_url=False)
    if errors[0]["type"] == "json_invalid":  # half a surrogate pair, or nested too deeply
        errors = in_python.errors(include_url=False)
    problem = _invalid(tool, arguments, errors)
    if tool.mask is not None:
        raise InvalidArgumentsError(tool.mask.text(problem.message), details=tool.mask.value(problem.details)) from None
    raise problem from None


def _bounded(tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    """Without most of what is surplus anyway: errors about a million fields would hold everybody up for seconds."""
    known = tool.info.input_schema.get("properties", {})
    surplus = islice((name for name in arguments if name not in known), MAX_SURPLUS_FIELDS)
    return {name: arguments[name] for name in (*(known.keys() & arguments.keys()), *surplus)}


def _invalid(tool: Tool, arguments: dict[str, Any], errors: Iterable[ErrorDetails]) -> InvalidArgumentsError:
    schemas = _Schemas(tool.info.input_schema)
    complaints = ValidationErrors()
    for error in errors:
        path = _path(error, arguments)
        complaints.add(path, _wrong(error, path, schemas))
        if complaints.enough:
            break
    return complaints.error(tool.name)


def _path(error: ErrorDetails, arguments: dict[str, Any]) -> list[str]:
    """Where the error is, in the caller's own terms: without the labels that pydantic adds for unions."""
    path: list[str] = []
    here: Any = arguments
    for step in error["loc"]:
        if isinstance(here, dict) and step in here:
            here = here[str(step)]
        elif isinstance(here, list) and isinstance(step, int) and step < len(here):
            here = here[step]
        elif not (error["type"] == "missing" and step == error["loc"][-1]):
            continue
        path.append(str(step))
    return path


def _wrong(error: ErrorDetails, path: Sequence[str], schemas: "_Schemas") -> str:
    """What is wrong with the field, to be read after its name."""
    kind = error["type"]
    if kind == "missing":
        return missing(next((schema for name, schema in schemas.beside(path) if name == path[-1]), {}))
    if kind == "extra_forbidden":
        return surplus(path[-1] if path else "", (name for name, _ in schemas.beside(path)))
    if kind == "string_unicode":
        return f"{'is' if path else 'a name is'} no Unicode text: it holds half of a surrogate pair"
    secret = any(name in path and write_only(schema) for name, schema in (*schemas.own, *schemas.within))
    if kind in _TYPE_ERRORS:
        return f"should be {_TYPE_ERRORS[kind]}, not {given(error['input'], secret=secret)}"
    if kind in {"value_error", "assertion_error"}:
        words = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        words = words[:1].lower() + words[1:]
        return f"is wrong: {words}" if path else words
    words = _SUBJECT.sub("", error["msg"]).replace(" after validation", "")
    words = words[:1].lower() + words[1:]
    return f"{words}, not {given(error['input'], secret=secret)}" if kind in _VALUE_ERRORS else words


class _Schemas:
    """The names and schemas of a tool's arguments, for what is said of a wrong one."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._whole = schema
        self._shared: dict[str, dict[str, Any]] = schema.get("$defs", {})
        self.own = list(schema.get("properties", {}).items())
        self.within = [item for part in self._shared.values() for item in part.get("properties", {}).items()]
        """Those of all objects within the arguments."""

    def beside(self, path: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
        """What may stand where this path leads to: of each object that may be there, where there is a choice."""
        found = [self._whole]
        for step in path[:-1]:
            found = [below for schema in self._each(found) for below in _below(schema, step)]
        return [item for schema in self._each(found) for item in schema.get("properties", {}).items()]

    def _each(self, schemas: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """These, and what they refer to or let one choose among."""
        for schema in schemas:
            yield schema
            shared = self._shared.get(schema.get("$ref", "").rpartition("/")[2])
            yield from self._each([*schema.get("anyOf", []), *schema.get("oneOf", []), *([shared] if shared else [])])


def _below(schema: Mapping[str, Any], step: str) -> Iterator[dict[str, Any]]:
    """What an object or an array has at one step of a path."""
    named = schema.get("properties", {}).get(step)
    for below in (named, schema.get("additionalProperties"), schema.get("items")):
        if isinstance(below, dict):
            yield below
