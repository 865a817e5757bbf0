"""Arguments by a JSON Schema that somebody else wrote: an API's operation, another server's tool. Pure.

Checked by ``jsonschema``, by the draft that ``$schema`` names or 2020-12. What could take for ever is done otherwise or
not at all: patterns go to RE2 where it takes them, equal items are found by their JSON, and ``unevaluatedProperties``
is left to whoever wrote the schema."""

import json
from collections.abc import Iterable
from hashlib import sha256
from itertools import islice
from typing import Any, Final

from jsonschema import Draft202012Validator, FormatChecker, SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import NoSuchResource, Unresolvable
from referencing.jsonschema import DRAFT202012

from .bounded_keywords import cautious
from .schema_validation import complain
from .validation_errors import MAX_FIELDS_IN_DETAILS, ValidationErrors

MAX_VALUES_AT_ONCE: Final = 500
"""Arguments with more values within are checked in a thread: jsonschema takes some 20 µs a value."""
MAX_DEPTH: Final = 100
"""Deeper arguments are refused: the check recurses, several frames a level."""

Arguments = dict[str, Any]

_MOST_RIGHT: Final = 20_000
_right: Final[dict[bytes, None]] = {}
"""SHA-256 of definitions that were checked and are right."""


class JsonSchema:
    """What a tool takes, as its author's JSON Schema says it; the tool's function gets a plain dict.

    Raises:
        ValueError: it is no JSON Schema of an object, or refers to what it does not hold.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        draft: Any = validator_for(schema, default=Draft202012Validator)  # the protocol knows half of its methods
        try:
            _check_schema(draft, schema)
            _check_references(schema)
        except SchemaError as error:
            where = "/".join(map(str, error.absolute_path)) or "its top"
            raise ValueError(f"the schema is no JSON Schema: at {where[:200]}, {error.message[:200]}") from None
        except RecursionError:
            raise ValueError("the schema is nested too deeply") from None
        if schema.get("type") != "object":
            raise ValueError('the schema of arguments must have "type": "object"')
        self.schema = schema
        self._validator: Validator = cautious(draft)(schema, registry=Registry())

    def __repr__(self) -> str:
        return f"<JsonSchema of {', '.join(self.schema.get('properties', ())) or 'any object'}>"

    def check(self, tool: str, arguments: Arguments) -> None:
        """Raise for arguments of the tool of this name that do not fit.

        Raises:
            InvalidArgumentsError: as ``bind`` has it.
        """
        complaints = ValidationErrors()
        if _is_deeper(arguments, MAX_DEPTH):
            complaints.add((), f"arguments are nested more than {MAX_DEPTH} levels deep")
            raise complaints.error(tool)
        for error in islice(self._validator.iter_errors(arguments), MAX_FIELDS_IN_DETAILS):
            complain(complaints, error)
            if complaints.enough:
                break
        else:
            if not _is_unicode(arguments):
                complaints.add((), "something holds half of a surrogate pair, which is no Unicode text")
        if complaints.any:
            raise complaints.error(tool)


def takes_long(arguments: Arguments) -> bool:
    """Whether a check of these arguments would hold up the event loop."""
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


def _check_schema(draft: Any, schema: dict[str, Any]) -> None:
    """Raise where it is none. What stands in ``$defs`` is checked by itself: the tools of an API share it, and a check
    takes a millisecond for each kilobyte.
    """
    definitions = schema.get("$defs")
    if isinstance(definitions, dict) and all(isinstance(one, dict) for one in definitions.values()):
        for definition in definitions.values():
            digest = sha256(json.dumps([draft.META_SCHEMA.get("$id"), definition]).encode()).digest()
            if digest not in _right:
                _check_whole(draft, definition)
                if len(_right) >= _MOST_RIGHT:
                    _right.clear()
                _right[digest] = None
        schema = {**schema, "$defs": {}}
    _check_whole(draft, schema)


def _check_whole(draft: Any, schema: dict[str, Any]) -> None:
    # Without formats: a pattern that Python's own engine does not take may be one all the same.
    draft.check_schema(schema, format_checker=FormatChecker(formats=()))


def _check_references(schema: dict[str, Any]) -> None:
    registry = Registry().with_resource("", DRAFT202012.create_resource(schema))
    resolver = registry.resolver()
    parts: list[Any] = [schema]
    while parts:
        part = parts.pop()
        if isinstance(part, list):
            parts.extend(part)
        elif isinstance(part, dict):
            parts.extend(part.values())
            target = part.get("$ref")
            if isinstance(target, str):
                try:
                    resolver.lookup(target)
                except (Unresolvable, NoSuchResource, ValueError):
                    raise ValueError(f"the schema refers to {target[:200]}, which it does not hold") from None


_BY_NAME: Final = ("properties", "dependentRequired", "dependentSchemas", "dependencies")
_PARTS: Final = ("allOf", "anyOf", "oneOf")
_PART: Final = ("if", "then", "else")
_SHOWN: Final = ("examples", "example", "default")
"""Of the whole object: they may show the arguments."""


def without_arguments(schema: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The schema of an object, as if it had none of these fields; also where it says so in several parts."""
    gone = frozenset(names)
    return _without(schema, gone) if gone else schema


def _without(schema: Any, gone: frozenset[str]) -> Any:
    if not isinstance(schema, dict):
        return schema
    left = {key: _left_of(key, value, gone) for key, value in schema.items() if key not in _SHOWN}
    if left.get("required") == []:
        del left["required"]
    return left


def _left_of(key: str, value: Any, gone: frozenset[str]) -> Any:
    if key in _BY_NAME and isinstance(value, dict):
        return {name: _names_left(part, gone) for name, part in value.items() if name not in gone}
    if key in _PARTS and isinstance(value, list):
        return [_without(part, gone) for part in value]
    if key in _PART:
        return _without(value, gone)
    return _names_left(value, gone) if key == "required" else value


def _names_left(value: Any, gone: frozenset[str]) -> Any:
    """A list of names without those; anything else as it is."""
    return [name for name in value if name not in gone] if isinstance(value, list) else value
