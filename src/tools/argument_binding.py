"""Validates a call's arguments by the tool's model or schema; an error names every invalid field. Pure."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ..protocol.error_codes import InvalidArgumentsError
from .former_arguments import AdaptedArguments, adapt_arguments, default_notices
from .json_schema import JsonSchema
from .tool_definition import Tool
from .validation_errors import (
    MAX_FIELDS_IN_DETAILS,
    MAX_UNKNOWN_ARGUMENTS,
    ValidationErrors,
    missing,
    quoted_value,
    unknown_argument,
    write_only,
)

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
"""Error types of pydantic that name Python types, with the JSON types to name instead."""

_VALUE_ERRORS: Final = frozenset(
    {"literal_error", "enum", "greater_than", "greater_than_equal", "less_than", "less_than_equal", "multiple_of"}
)
"""Errors about a value of the right type; they repeat the value."""

_MAX_ERRORS: Final = 1_000
"""The maximum number of errors that are formatted in one step; each takes 2.4 µs (decision 54)."""
_SHORTENED_LEVELS: Final = 8

_SUBJECT: Final = re.compile(r"^[A-Z][a-z]+ (?=should )")
"""``List should have …``, ``Input should be …``: replaced by the field's name."""


class AdaptedValues(NamedTuple):
    """The validated arguments of a call that used a form of an earlier server."""

    values: BaseModel
    notices: tuple[str, ...]
    """The changes, one sentence each."""
    arguments: dict[str, Any]
    """The arguments in the current form, as a caller would send them."""


BoundArguments = BaseModel | dict[str, Any] | AdaptedValues
"""Validated arguments: an instance of the tool's model, with notices if they were adapted; or the plain dict if the
tool has a JSON Schema. Most calls use the current form, so they need no ``AdaptedValues``."""


def bind(tool: Tool, arguments: dict[str, Any]) -> BaseModel | dict[str, Any]:
    """The values of ``bind_arguments``."""
    bound = bind_arguments(tool, arguments)
    return bound.values if isinstance(bound, AdaptedValues) else bound


def bind_arguments(tool: Tool, arguments: dict[str, Any], *, strict: bool = False) -> BoundArguments:
    """The tool's arguments, validated.

    Unless ``strict``, former names and forms are adapted (``former_arguments``). Arguments whose check by a JSON Schema
    takes long are validated when the call runs, in a thread.

    Raises:
        InvalidArgumentsError: the message names the first eight wrong, missing and unknown arguments;
            ``details.fields`` has the path of each, such as ``files.2``, with its error.
    """
    if tool.bound:
        _refuse_bound(tool, arguments)
    model = tool.arguments
    if isinstance(model, JsonSchema):
        model.check_at_once(tool.name, arguments)
        return arguments
    try:
        return _bind_model(tool, model, arguments)
    except InvalidArgumentsError:
        adapted = None if strict else _adapted(tool, model, arguments)
        if adapted is None:
            raise
    values = _bind_model(tool, model, adapted.arguments)
    return AdaptedValues(values, adapted.notices + default_notices(values), adapted.arguments)


def _adapted(tool: Tool, model: type[BaseModel], arguments: dict[str, Any]) -> AdaptedArguments | None:
    if len(arguments) > tool.max_fields:
        return None
    return adapt_arguments(tool.name, model, tool.info.input_schema, arguments)


def _refuse_bound(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Reject arguments that the operator has bound.

    Raises:
        InvalidArgumentsError: it names the arguments.
    """
    tried = [name for name in tool.bound if name in arguments]
    if tried:
        problem = "is set by the daemon's operator; omit it"
        message = "; ".join(f"{name} {problem}" for name in tried)
        raise InvalidArgumentsError(f"{tool.name}: {message}.", details={"fields": dict.fromkeys(tried, problem)})


def _bind_model(tool: Tool, model: type[BaseModel], arguments: dict[str, Any]) -> BaseModel:
    if len(arguments) > tool.max_fields:
        arguments = _bounded(tool, arguments)
    arguments = {**arguments, **tool.bound} if tool.bound else arguments
    try:
        # Does the same as `model_validate`, with one function call less.
        return model.__pydantic_validator__.validate_python(arguments)  # type: ignore[no-any-return]
    except ValidationError as error:
        in_python = error
    if in_python.error_count() > _MAX_ERRORS:
        arguments = _shortened(arguments, _SHORTENED_LEVELS)
        try:
            model.model_validate(arguments)
        except ValidationError as error:
            in_python = error
        else:
            raise InvalidArgumentsError(f"{tool.name}: {in_python.error_count()} values are wrong.")
    # Types that JSON lacks (dates, enums, tuples) are strict in Python mode and lenient in JSON mode, so the JSON
    # result counts.
    try:
        return model.model_validate_json(json.dumps(arguments))
    except ValidationError as error:
        in_json = error
    except (RecursionError, ValueError):  # nested too deeply, or a number with more digits than Python converts
        in_json = in_python
    errors = in_json.errors(include_url=False)
    if errors[0]["type"] == "json_invalid":  # half a surrogate pair, or nested too deeply
        errors = in_python.errors(include_url=False)
    problem = _invalid(tool, arguments, errors)
    if tool.mask is not None:
        raise InvalidArgumentsError(tool.mask.text(problem.message), details=tool.mask.value(problem.details)) from None
    raise problem from None


def _shortened(value: Any, levels: int) -> Any:
    """The value with only the first elements of each list, because formatting the errors of all elements would take
    seconds.
    """
    if levels > 0 and isinstance(value, list):
        return [_shortened(item, levels - 1) for item in value[:MAX_FIELDS_IN_DETAILS]]
    if levels > 0 and isinstance(value, dict):
        return {name: _shortened(item, levels - 1) for name, item in value.items()}
    return value


def _bounded(tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments without most unknown ones, because errors about a million of them would block the event loop for
    seconds.
    """
    known = tool.info.input_schema.get("properties", {})
    unknown_argument = islice((name for name in arguments if name not in known), MAX_UNKNOWN_ARGUMENTS)
    return {name: arguments[name] for name in (*(known.keys() & arguments.keys()), *unknown_argument)}


def _invalid(tool: Tool, arguments: dict[str, Any], errors: Iterable[ErrorDetails]) -> InvalidArgumentsError:
    schemas = _Schemas(tool.info.input_schema)
    errors_found = ValidationErrors()
    for error in errors:
        path = _path(error, arguments)
        errors_found.add(path, _message_of(error, path, schemas))
        if errors_found.enough:
            break
    return errors_found.error(tool.name)


def _path(error: ErrorDetails, arguments: dict[str, Any]) -> list[str]:
    """The error's place in the caller's arguments, without the labels that pydantic adds for unions."""
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


def _message_of(error: ErrorDetails, path: Sequence[str], schemas: "_Schemas") -> str:
    """The error of the field, to be read after its name."""
    kind = error["type"]
    if kind == "missing":
        return missing(next((schema for name, schema in schemas.alternatives(path) if name == path[-1]), {}))
    if kind == "extra_forbidden":
        return unknown_argument(path[-1] if path else "", (name for name, _ in schemas.alternatives(path)))
    if kind == "string_unicode":
        return f"{'is' if path else 'a name is'} not Unicode text: it contains half of a surrogate pair"
    secret = any(name in path and write_only(schema) for name, schema in (*schemas.own, *schemas.within))
    if kind in _TYPE_ERRORS:
        return f"should be {_TYPE_ERRORS[kind]}, not {quoted_value(error['input'], secret=secret)}"
    if kind in {"value_error", "assertion_error"}:
        text = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        text = text[:1].lower() + text[1:]
        return f"is wrong: {text}" if path else text
    text = _SUBJECT.sub("", error["msg"]).replace(" after validation", "")
    text = text[:1].lower() + text[1:]
    return f"{text}, not {quoted_value(error['input'], secret=secret)}" if kind in _VALUE_ERRORS else text


class _Schemas:
    """The names and schemas of a tool's arguments, for error messages."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._whole = schema
        self._shared: dict[str, dict[str, Any]] = schema.get("$defs", {})
        self.own = list(schema.get("properties", {}).items())
        self.within = [item for part in self._shared.values() for item in part.get("properties", {}).items()]
        """The properties of all nested objects."""

    def alternatives(self, path: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
        """The allowed properties of each object that is possible at the end of this path."""
        schemas = [self._whole]
        for step in path[:-1]:
            schemas = [below for schema in self._each(schemas) for below in _below(schema, step)]
        return [item for schema in self._each(schemas) for item in schema.get("properties", {}).items()]

    def _each(self, schemas: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The schemas, the schemas that they refer to, and their alternatives."""
        for schema in schemas:
            yield schema
            shared = self._shared.get(schema.get("$ref", "").rpartition("/")[2])
            yield from self._each([*schema.get("anyOf", []), *schema.get("oneOf", []), *([shared] if shared else [])])


def _below(schema: Mapping[str, Any], step: str) -> Iterator[dict[str, Any]]:
    """The schemas at one step of a path into an object or an array."""
    named = schema.get("properties", {}).get(step)
    for below in (named, schema.get("additionalProperties"), schema.get("items")):
        if isinstance(below, dict):
            yield below
