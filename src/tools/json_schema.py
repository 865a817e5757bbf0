"""Arguments by a JSON Schema that somebody else wrote: an API's operation, another server's tool. Pure.

Checked by ``jsonschema``, by the draft that ``$schema`` names or 2020-12. What could take for ever is done otherwise or
not at all: patterns go to RE2 where it takes them, equal items are found by their JSON, and ``unevaluatedProperties``
is left to whoever wrote the schema.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from typing import Any, Final

from jsonschema import Draft202012Validator, FormatChecker, SchemaError, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import NoSuchResource, Unresolvable
from referencing.jsonschema import DRAFT202012

from ..shaping import PatternError, compile_pattern
from .complaints import JSON_TYPES, MAX_FIELDS_IN_DETAILS, Complaints, given, missing, surplus, write_only

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
        self._validator: Validator = _cautious(draft)(schema, registry=Registry())

    def __repr__(self) -> str:
        return f"<JsonSchema of {', '.join(self.schema.get('properties', ())) or 'any object'}>"

    def check(self, tool: str, arguments: Arguments) -> None:
        """Raise for arguments of the tool of this name that do not fit.

        Raises:
            InvalidArgumentsError: as ``bind`` has it.
        """
        complaints = Complaints()
        if _is_deeper(arguments, MAX_DEPTH):
            complaints.add((), f"arguments are nested more than {MAX_DEPTH} levels deep")
            raise complaints.error(tool)
        for error in islice(self._validator.iter_errors(arguments), MAX_FIELDS_IN_DETAILS):
            _complain(complaints, error)
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


# --- keywords, where jsonschema's own would take too long ------------------------------------------------------------


def _cautious(draft: Any) -> Any:
    return extend(  # type: ignore[no-untyped-call] # jsonschema's stubs leave it open
        draft,
        {
            "pattern": _pattern,
            "patternProperties": _pattern_properties,
            "additionalProperties": _additional_properties,
            "unevaluatedProperties": _not_checked,
            "unevaluatedItems": _not_checked,
            "uniqueItems": _unique_items,
        },
    )


def _not_checked(*_: Any) -> Iterator[ValidationError]:
    return iter(())


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> Callable[[str], bool] | None:
    try:
        return compile_pattern(pattern)
    except PatternError:
        return None


def _fits(pattern: str, text: str) -> bool | None:
    """Whether the text has the pattern; None where RE2 does not take it."""
    matches = _matcher(pattern)
    return None if matches is None else matches(text)


def _pattern(_: Validator, pattern: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and _fits(pattern, instance) is False:
        yield ValidationError("does not match")


def _pattern_properties(validator: Validator, patterns: Any, instance: Any, _: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, schema in patterns.items():
            for name, value in instance.items():
                if _fits(pattern, name):
                    yield from validator.descend(value, schema, path=name, schema_path=pattern)  # type: ignore[attr-defined] # of jsonschema's validators, and not of the protocol


def _additional_properties(validator: Validator, rest: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    for name in list(_extras(instance, schema)):
        if rest is False:
            yield ValidationError("surplus", path=[name])
        else:
            yield from validator.descend(instance[name], rest, path=name)  # type: ignore[attr-defined] # as above


def _extras(instance: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name in instance:
        if name not in known and not any(_fits(pattern, name) in {True, None} for pattern in patterns):
            yield name


def _unique_items(_: Validator, unique: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
    if unique is True and isinstance(instance, list):
        different = {json.dumps(item, sort_keys=True) for item in instance}
        if len(different) < len(instance):
            yield ValidationError("has equal items")


# --- words -----------------------------------------------------------------------------------------------------------


def _complain(complaints: Complaints, error: ValidationError) -> None:
    path = [str(step) for step in error.absolute_path]
    value: Any = error.validator_value
    instance: Any = error.instance
    match error.validator:
        case "required":
            properties = _mapping(error.schema).get("properties", {})
            for name in islice((name for name in value if name not in instance), 64):
                complaints.add([*path, name], missing(_mapping(properties.get(name))))
        case "additionalProperties" if value is False:
            complaints.add(path, surplus(path[-1], _mapping(error.schema).get("properties", {})))
        case "dependentRequired":
            for name, needed in value.items():
                if name in instance:
                    for other in needed:
                        if other not in instance:
                            complaints.add([*path, other], f"is missing; it goes with {name}")
        case "anyOf" | "oneOf" if error.context:
            _complain_of_branches(complaints, error, path)
        case _:
            complaints.add(path, _wrong(error))


def _complain_of_branches(complaints: Complaints, error: ValidationError, path: list[str]) -> None:
    """None of several forms fits: the types that would, or what is wrong by the form that is nearest."""
    context = error.context or []
    if all(one.validator == "type" and one.absolute_path == error.absolute_path for one in context):
        types = [kind for one in context for kind in _listed(one.validator_value)]
        complaints.add(path, _wrong_type(types, error))
        return
    nearest = best_match([error])
    if nearest is None or nearest is error or nearest.validator in {"anyOf", "oneOf"}:
        complaints.add(path, "fits none of the forms that it may have")
    else:
        _complain(complaints, nearest)


_BOUNDS: Final[Mapping[str, str]] = {
    "minimum": "should be {bound} or more",
    "maximum": "should be {bound} or less",
    "exclusiveMinimum": "should be more than {bound}",
    "exclusiveMaximum": "should be less than {bound}",
    "multipleOf": "should be a multiple of {bound}",
}
_SIZES: Final[Mapping[str, str]] = {
    "minLength": "should have {bound} characters or more",
    "maxLength": "should have {bound} characters or fewer",
    "minItems": "should have {bound} items or more",
    "maxItems": "should have {bound} items or fewer",
    "minProperties": "should have {bound} fields or more",
    "maxProperties": "should have {bound} fields or fewer",
    "pattern": "should match the pattern {bound}",
    "uniqueItems": "should have no two equal items",
    "contains": "has no item of the kind that it needs",
    "not": "is of a form that is not allowed",
    "oneOf": "fits several forms, and must fit one alone",
}


def _wrong(error: ValidationError) -> str:
    """What is wrong with one value, to be read after its name."""
    keyword = str(error.validator)
    bound: Any = error.validator_value
    if keyword == "type":
        return _wrong_type(_listed(bound), error)
    if keyword in _BOUNDS:
        return f"{_BOUNDS[keyword].format(bound=bound)}, not {_given(error)}"
    if keyword in _SIZES:
        return _SIZES[keyword].format(bound=str(bound)[:200])
    if keyword == "enum":
        choices = ", ".join(given(choice, secret=False) for choice in bound[:20]) + (", …" if len(bound) > 20 else "")
        return f"should be one of {choices}, not {_given(error)}"
    if keyword == "const":
        return f"should be {given(bound, secret=False)}, not {_given(error)}"
    return f"does not fit its schema ({keyword[:40]})" if error.validator else "is not allowed here"


def _wrong_type(types: list[str], error: ValidationError) -> str:
    expected = " or ".join(dict.fromkeys(JSON_TYPES.get(kind, kind) for kind in types))
    return f"should be {expected}, not {_given(error)}"


def _given(error: ValidationError) -> str:
    schema = _mapping(error.schema)
    return given(error.instance, secret=write_only(schema) or schema.get("format") == "password")


def _listed(types: Any) -> list[str]:
    return [types] if isinstance(types, str) else list(types)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
