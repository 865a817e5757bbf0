"""A call's arguments → the tool's argument model, or an error that names every field that is wrong. Pure."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ..protocol.errors import InvalidArgumentsError
from ..protocol.suggest import close_names, did_you_mean
from .tool import MAX_SURPLUS_FIELDS, Tool

MAX_FIELDS_IN_MESSAGE: Final = 8
MAX_FIELDS_IN_DETAILS: Final = MAX_SURPLUS_FIELDS
MAX_PATH_CHARS: Final = 120
MAX_VALUE_CHARS: Final = 40
"""Of what the caller gave only so much is repeated."""

_MAX_NUMBER_BITS: Final = 128

_WHOLE: Final = "arguments"
"""The field that an error of all arguments together is told under."""

_JSON_TYPES: Final[Mapping[str, str]] = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}

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


def bind(tool: Tool, arguments: dict[str, Any]) -> BaseModel:
    """The tool's arguments, checked and typed.

    Raises:
        InvalidArgumentsError: the message names every wrong, missing and surplus argument (the first eight of
            them); ``details.fields`` has each field's path, such as ``files.2``, with what is wrong with it.
    """
    if len(arguments) > tool.most_fields:
        arguments = _bounded(tool, arguments)
    try:
        return tool.validate(arguments)
    except ValidationError as error:
        in_python = error
    # What JSON has no type for (dates, enums, tuples) is strict in Python and open in JSON: only JSON's word counts.
    try:
        return tool.arguments.model_validate_json(json.dumps(arguments))
    except ValidationError as error:
        in_json = error
    except (RecursionError, ValueError):  # nested too deeply, or a number of more digits than Python writes
        in_json = in_python
    errors = in_json.errors(include_url=False)
    if errors[0]["type"] == "json_invalid":  # half a surrogate pair, or nested too deeply
        errors = in_python.errors(include_url=False)
    raise _invalid(tool, arguments, errors) from None


def _bounded(tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    """Without most of what is surplus anyway: errors about a million fields would hold everybody up for seconds."""
    known = tool.info.input_schema.get("properties", {})
    surplus = islice((name for name in arguments if name not in known), MAX_FIELDS_IN_DETAILS)
    return {name: arguments[name] for name in (*(known.keys() & arguments.keys()), *surplus)}


def _invalid(tool: Tool, arguments: dict[str, Any], errors: Iterable[ErrorDetails]) -> InvalidArgumentsError:
    schemas = list(_properties(tool.info.input_schema))
    fields: dict[str, str] = {}
    for error in errors:
        path = _path(error, arguments)
        name = _sendable(".".join(path)[:MAX_PATH_CHARS] or _WHOLE)
        wrong = _sendable(_wrong(error, path, schemas))
        fields[name] = f"{fields[name]}, or {wrong}" if name in fields and wrong not in fields[name] else wrong
        if len(fields) == MAX_FIELDS_IN_DETAILS:
            break
    named = [
        wrong if name == _WHOLE else f"{name} {wrong}" for name, wrong in list(fields.items())[:MAX_FIELDS_IN_MESSAGE]
    ]
    if (more := len(fields) - len(named)) > 0:
        named.append(f"and {more} more in details.fields")
    told = "; ".join(named)
    end = "" if told.endswith((".", "?")) else "."
    return InvalidArgumentsError(f"{tool.name}: {told}{end}", details={"fields": fields})


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


def _wrong(error: ErrorDetails, path: Sequence[str], schemas: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """What is wrong with the field, to be read after its name."""
    kind = error["type"]
    if kind == "missing":
        expected = next((_expected(schema) for name, schema in schemas if name == path[-1]), "")
        return f"is missing; it should be {expected}" if expected else "is missing"
    if kind == "extra_forbidden":
        known = [name for name, _ in schemas]
        close = close_names(path[-1], known, n=1) if path else []
        hint = did_you_mean(close) or f"there are {', '.join(dict.fromkeys(known)) or 'none'}"
        return f"is not an argument; {hint}"
    if kind == "string_unicode":
        return f"{'is' if path else 'a name is'} no Unicode text: it holds half of a surrogate pair"
    secret = any(name in path and _write_only(schema) for name, schema in schemas)
    if kind in _TYPE_ERRORS:
        return f"should be {_TYPE_ERRORS[kind]}, not {_given(error['input'], secret=secret)}"
    words = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ").removeprefix("Input ")
    words = words[:1].lower() + words[1:]
    if kind in _VALUE_ERRORS:
        return f"{words}, not {_given(error['input'], secret=secret)}"
    return f"is wrong: {words}" if path and kind in {"value_error", "assertion_error"} else words


def _given(value: Any, *, secret: bool) -> str:
    """What the caller gave: a short value as it is, of everything else its type."""
    match value:
        case None:
            return "null"
        case list() | tuple():
            return "an array"
        case dict():
            return "an object"
        case str() if secret or len(value) > MAX_VALUE_CHARS:
            return f"a string of {len(value)} characters"
        case int() if value.bit_length() > _MAX_NUMBER_BITS:
            return "a number far too large"
        case bool() | int() | float() | str() if not secret:
            return json.dumps(value, ensure_ascii=False)
        case _:
            return "what was given"


def _sendable(text: str) -> str:
    """Without halves of surrogate pairs: the error must not fail for the reason that it tells of."""
    return text.encode(errors="replace").decode()


def _properties(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every argument's name and schema: the tool's own first, then those of the objects within."""
    for part in (schema, *schema.get("$defs", {}).values()):
        yield from part.get("properties", {}).items()


def _expected(schema: dict[str, Any]) -> str:
    options = schema.get("anyOf", [schema])
    types = (_JSON_TYPES.get(option.get("type", "object" if "$ref" in option else ""), "") for option in options)
    return " or ".join(dict.fromkeys(filter(None, types)))


def _write_only(schema: dict[str, Any]) -> bool:
    return any(option.get("writeOnly") is True for option in (schema, *schema.get("anyOf", [])))
