"""Widens ``type: object`` to the types that a schema's examples, default or description show. Pure.

Generators write ``type: object`` for types that they do not know, such as a date. Only an object without properties is
widened: a string with the example 5 stays a string.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...protocol.json_text import InvalidJsonError, parse_json

MAX_DEPTH: Final = 4
"""The number of levels of an example that are compared with its schema."""
MAX_ITEMS: Final = 3
"""The number of items of a list in an example that are compared with the schema of its items."""
_MAX_EXAMPLE_CHARS: Final = 200

_OBJECT_KEYWORDS: Final = frozenset(
    {"properties", "additionalProperties", "patternProperties", "required", "allOf", "anyOf", "oneOf", "minProperties"}
)
"""Keywords that make a schema an object."""
_FORMATS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("date", "date-time", "time", "uuid", "email", "uri", "byte", "binary"), "string"),
    **dict.fromkeys(("int32", "int64"), "integer"),
    **dict.fromkeys(("float", "double"), "number"),
}
"""Formats that exclude an object."""
_TIME: Final = re.compile(r"\bISO[ -]?8601|\bRFC[ -]?3339|\bYYYY|\btimestamp\b|\b(date|time)\W*$", re.IGNORECASE)
"""Matches the descriptions of dates and times."""


def examples_of(declaration: Mapping[str, Any]) -> Iterator[Any]:
    """Yields the values that a schema, a parameter or a media type shows as examples or default."""
    for keyword in ("example", "x-example", "default"):
        if declaration.get(keyword) is not None:
            yield declaration[keyword]
    examples = declaration.get("examples")
    if isinstance(examples, list):
        yield from examples[:MAX_ITEMS]
    elif isinstance(examples, dict):  # the examples of a parameter or media type
        for example in list(examples.values())[:MAX_ITEMS]:
            if isinstance(example, dict) and "value" in example:
                yield example["value"]


def accept_example(schema: dict[str, Any], example: Any, depth: int = 0) -> None:
    """Changes a converted schema to accept the types that this example shows for objects without properties."""
    if depth > MAX_DEPTH:
        return
    if _is_bare_object(schema):
        kind = _type_of(example)
        if kind is not None:
            _widen(schema, kind)
            if kind != "array":
                schema.setdefault("examples", [example])
    elif isinstance(example, dict) and isinstance(properties := schema.get("properties"), dict):
        for name, part in properties.items():
            if name in example and isinstance(part, dict):
                accept_example(part, example[name], depth + 1)
    elif isinstance(example, list) and isinstance(items := schema.get("items"), dict):
        for item in example[:MAX_ITEMS]:
            accept_example(items, item, depth + 1)


def accept_description(schema: dict[str, Any]) -> None:
    """Changes a converted object without properties to accept the string or number that its format or description
    shows.
    """
    if schema.get("type") != "object" or not _is_bare_object(schema):
        return
    kind = _FORMATS.get(str(schema.get("format")))
    if kind is None and _TIME.search(schema.get("description", "")):
        kind = "string"
    if kind is not None:
        _widen(schema, kind)


def _is_bare_object(schema: Mapping[str, Any]) -> bool:
    kinds = schema.get("type")
    return "object" in (kinds if isinstance(kinds, list) else [kinds]) and _OBJECT_KEYWORDS.isdisjoint(schema)


def _widen(schema: dict[str, Any], kind: str) -> None:
    """Puts the shown type first, since the API most likely takes it."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if kind not in kinds:
        schema["type"] = [kind, *kinds]


def _type_of(example: Any) -> str | None:
    """The JSON type of an example that is not an object. A text may be an object as JSON."""
    match example:
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case list():
            return "array"
        case str() if len(example) <= _MAX_EXAMPLE_CHARS and not _is_object_text(example):
            return "string"
        case _:
            return None


def _is_object_text(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        return isinstance(parse_json(text), dict)
    except InvalidJsonError:
        return False
