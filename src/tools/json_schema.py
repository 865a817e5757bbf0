"""Validates arguments by a JSON Schema from outside, such as the schema of an API operation or of another server's
tool. Pure.

Arguments are checked with ``jsonschema``, by the draft in ``$schema`` or 2020-12. Checks that could take very long are
replaced or omitted: patterns run on RE2 if it supports them, equal items are compared as JSON, and
``unevaluatedProperties`` is left to the schema's author.
"""

import json
from collections.abc import Iterable
from functools import cache, cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from jsonschema import Draft202012Validator, FormatChecker, SchemaError
from jsonschema.exceptions import UnknownType
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import NoSuchResource, Unresolvable
from referencing.jsonschema import DRAFT202012

from ..protocol.error_codes import InvalidArgumentsError
from ..protocol.tool_call import Json
from .bounded_keywords import TooManyStepsError, limit_steps, with_bounded_keywords
from .schema_validation import add_error
from .validation_errors import MAX_FIELDS_IN_DETAILS, ValidationErrors

MAX_VALUES_AT_ONCE: Final = 500
"""Arguments with more values are checked in a thread: jsonschema takes some 20 µs per value."""
MAX_DEPTH: Final = 100
"""Deeper arguments are rejected: the check recurses several frames per level."""

if TYPE_CHECKING:
    import jsonschema_rs

Arguments = dict[str, Any]

MAX_STEPS_AT_ONCE: Final = 3_000
"""The maximum keywords that a check on the event loop evaluates, which takes some 50 ms."""
MAX_STEPS: Final = 10_000
MAX_STEPS_PER_VALUE: Final = 200
"""The maximum keywords that any check evaluates, and the addition per value. References can multiply them: twenty
definitions, each of which refers twice to the next, make a million."""

_UNCHECKABLE: Final = (
    *(RecursionError, ValueError, TypeError, ArithmeticError, AttributeError, LookupError),
    *(UnknownType, Unresolvable),
)
"""The exceptions of jsonschema for schemas that the metaschemas permit, such as a schema that refers to itself or to a
place that is not a schema, and for numbers that a double cannot hold.
"""


class JsonSchema:
    """A tool's arguments as a JSON Schema; the tool's function gets a plain dict.

    Raises:
        ValueError: the schema is not a JSON Schema of an object, or has undefined references.
    """

    # Whether a check on the event loop was given up; all later checks run in threads.
    _slow = False

    def __init__(self, schema: dict[str, Any]) -> None:
        if not isinstance(schema.get("$schema", ""), str):
            raise ValueError("the schema is not a JSON Schema: at $schema, it is not a string")  # noqa: TRY004 # documented
        validator_class = _validator_class(schema)
        try:
            _check_schema(validator_class, schema)
            _check_references(schema)
        except SchemaError as error:
            where = "/".join(map(str, error.absolute_path)) or "its top"
            raise ValueError(f"the schema is not a JSON Schema: at {where[:200]}, {error.message[:200]}") from None
        except RecursionError:
            raise ValueError("the schema is nested too deeply") from None
        if schema.get("type") != "object":
            raise ValueError('the schema of arguments must have "type": "object"')
        self.schema = schema

    @classmethod
    def _part_of(cls, schema: dict[str, Any]) -> "JsonSchema":
        """A part of a checked schema. It is not checked again, because that would take milliseconds."""
        part = cls.__new__(cls)
        part.schema = schema
        return part

    def __repr__(self) -> str:
        return f"<JsonSchema of {', '.join(self.schema.get('properties', ())) or 'any object'}>"

    @cached_property
    def _validator(self) -> Validator:
        validator: Validator = with_bounded_keywords(_validator_class(self.schema))(self.schema, registry=Registry())
        return validator

    def without(self, names: Iterable[str]) -> "JsonSchema":
        """The schema without these arguments."""
        return JsonSchema._part_of(without_arguments(self.schema, names))

    def accepts(self, name: str, value: Json) -> bool:
        """Whether an argument may have this value, independent of the others."""
        part = {**self.schema, "properties": {name: self.schema["properties"][name]}}
        for key in _OF_SEVERAL_ARGUMENTS:
            part.pop(key, None)
        try:
            JsonSchema._part_of(part).check("", {name: value})
        except InvalidArgumentsError:
            return False
        return True

    def takes_long(self, arguments: Arguments) -> bool:
        """Whether validating these arguments would block the event loop."""
        return self._slow or takes_long(arguments)

    def check_at_once(self, tool: str, arguments: Arguments) -> None:
        """Like ``check``, but gives up if the check takes long; ``takes_long`` then returns true, and the caller has to
        call ``check``.

        Raises:
            InvalidArgumentsError: as raised by ``bind``.
        """
        if not self.takes_long(arguments):
            try:
                self._check(tool, arguments, MAX_STEPS_AT_ONCE)
            except TooManyStepsError:
                self._slow = True

    def check(self, tool: str, arguments: Arguments) -> None:
        """Validate arguments of the tool with this name.

        Raises:
            InvalidArgumentsError: as raised by ``bind``.
        """
        try:
            self._check(tool, arguments, MAX_STEPS + MAX_STEPS_PER_VALUE * _number_of_values(arguments))
        except TooManyStepsError:
            errors = ValidationErrors()
            errors.add((), "the tool's schema refers to itself too often to be checked with these arguments")
            raise errors.error(tool) from None

    def _check(self, tool: str, arguments: Arguments, steps: int) -> None:
        errors = ValidationErrors()
        if _is_deeper(arguments, MAX_DEPTH):
            errors.add((), f"arguments are nested more than {MAX_DEPTH} levels deep")
            raise errors.error(tool)
        limit_steps(steps)
        try:
            self._add_errors(errors, arguments)
        except _UNCHECKABLE as error:
            errors.add((), f"the tool's schema cannot be checked with these arguments ({type(error).__name__})")
        if errors.any:
            raise errors.error(tool)

    def _add_errors(self, errors: ValidationErrors, arguments: Arguments) -> None:
        for error in islice(self._validator.iter_errors(arguments), MAX_FIELDS_IN_DETAILS):
            add_error(errors, error)
            if errors.enough:
                return
        if not _is_unicode(arguments):
            errors.add((), "a text contains half of a surrogate pair, which is not Unicode text")


_OF_SEVERAL_ARGUMENTS: Final = frozenset(
    {"required", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentRequired", "dependentSchemas"}
)
"""Keywords that relate arguments to one another."""


def _validator_class(schema: dict[str, Any]) -> Any:  # the protocol lacks half of its methods
    return validator_for(schema, default=Draft202012Validator)


def takes_long(arguments: Arguments) -> bool:
    """Whether validating these arguments would block the event loop."""
    left = MAX_VALUES_AT_ONCE
    parts: list[Any] = [arguments]
    while parts:
        part = parts.pop()
        if isinstance(part, dict | list):
            left -= len(part)
            if left < 0:
                return True
            parts.extend(part.values() if isinstance(part, dict) else part)
    return False


def _number_of_values(arguments: Arguments) -> int:
    number = 0
    parts: list[Any] = [arguments]
    while parts:
        part = parts.pop()
        number += len(part)
        parts.extend(
            inner for inner in (part.values() if isinstance(part, dict) else part) if isinstance(inner, dict | list)
        )
    return number


def _is_deeper(value: object, levels: int) -> bool:
    layer = [value]
    for _ in range(levels):
        layer = [
            inner
            for part in layer
            if isinstance(part, dict | list)
            for inner in (part.values() if isinstance(part, dict) else part)
            if isinstance(inner, dict | list)
        ]
        if not layer:
            return False
    return True


def _is_unicode(arguments: Arguments) -> bool:
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_schema(validator_class: Any, schema: dict[str, Any]) -> None:
    if not _is_certainly_valid(validator_class, schema):
        # Without formats: patterns that Python's engine rejects may be valid.
        validator_class.check_schema(schema, format_checker=FormatChecker(formats=()))


def _is_certainly_valid(validator_class: Any, schema: dict[str, Any]) -> bool:
    """Whether the compiled metaschema accepts the schema. This takes a thousandth of the time of ``jsonschema``, which
    checks all other schemas, since it knows every draft and has the error messages.
    """
    if _is_deeper(schema, MAX_DEPTH):  # the compiled check recurses without a limit
        return False
    metaschema = _compiled_metaschema(validator_class)
    try:
        return metaschema is not None and metaschema.is_valid(schema)
    except ValueError:  # not JSON
        return False


@cache
def _compiled_metaschema(validator_class: Any) -> "jsonschema_rs.Validator | None":
    """None if the compiler does not know the draft."""
    # Imported here, because without sources no schema is checked.
    import jsonschema_rs  # noqa: PLC0415

    try:
        return jsonschema_rs.validator_for(validator_class.META_SCHEMA, validate_formats=False)
    except jsonschema_rs.ValidationError:
        return None


_REFERENCES: Final = ("$ref", "$dynamicRef")


def _check_whole(validator_class: Any, schema: dict[str, Any]) -> None:
    # Without formats: patterns that Python's engine rejects may be valid.
    validator_class.check_schema(schema, format_checker=FormatChecker(formats=()))


def _check_references(schema: dict[str, Any]) -> None:
    registry = Registry().with_resource("", DRAFT202012.create_resource(schema))
    resolver = registry.resolver()
    targets: set[str] = set()
    parts: list[Any] = [schema]
    while parts:
        part = parts.pop()
        if isinstance(part, list):
            parts.extend(part)
        elif isinstance(part, dict):
            parts.extend(part.values())
            targets.update(target for key in _REFERENCES if isinstance(target := part.get(key), str))
    for target in targets:
        try:
            resolver.lookup(target)
        except (Unresolvable, NoSuchResource, ValueError, AttributeError, TypeError):
            # The last two errors: the library treats everything on the way to the target as a schema, even a string.
            raise ValueError(f"the schema refers to {target[:200]}, which it does not define") from None


_BY_NAME: Final = ("properties", "dependentRequired", "dependentSchemas", "dependencies")
_PARTS: Final = ("allOf", "anyOf", "oneOf")
_PART: Final = ("if", "then", "else")
_EXAMPLE_KEYWORDS: Final = ("examples", "example", "default")
"""Keywords of the whole object that may show the arguments."""


def without_arguments(schema: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The schema of an object without these fields, also in its composed parts."""
    removed = frozenset(names)
    return _without(schema, removed) if removed else schema


def _without(schema: Any, removed: frozenset[str]) -> Any:
    if not isinstance(schema, dict):
        return schema
    left = {key: _left_of(key, value, removed) for key, value in schema.items() if key not in _EXAMPLE_KEYWORDS}
    if left.get("required") == []:
        del left["required"]
    return left


def _left_of(key: str, value: Any, removed: frozenset[str]) -> Any:
    if key in _BY_NAME and isinstance(value, dict):
        return {name: _names_left(part, removed) for name, part in value.items() if name not in removed}
    if key in _PARTS and isinstance(value, list):
        return [_without(part, removed) for part in value]
    if key in _PART:
        return _without(value, removed)
    return _names_left(value, removed) if key == "required" else value


def _names_left(value: Any, removed: frozenset[str]) -> Any:
    """A list of names without the removed ones; anything else unchanged."""
    return [name for name in value if name not in removed] if isinstance(value, list) else value
