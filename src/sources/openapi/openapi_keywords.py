"""A schema's keywords and types: which there are, their values, and what documents say in their place. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, Final

ODD_TYPES: Final[Mapping[str, str | None]] = {
    **dict.fromkeys(("int", "int32", "int64", "long", "short", "byte"), "integer"),
    **dict.fromkeys(("float", "double", "decimal", "numeric", "currency"), "number"),
    **dict.fromkeys(("bool", "bit"), "boolean"),
    **dict.fromkeys(("list", "set", "arr", "tuple"), "array"),
    **dict.fromkeys(("dict", "map", "hash", "json", "struct", "obj"), "object"),
    **dict.fromkeys(("str", "text", "char", "date", "datetime", "date-time", "time", "uuid", "email"), "string"),
    **dict.fromkeys(("uri", "url", "enum", "file", "binary", "password", "timestamp"), "string"),
    **dict.fromkeys(("any", "mixed", "undefined", "*", ""), None),
    **dict.fromkeys(("none", "nil"), "null"),
}
"""What documents say and mean; None is any value."""
TYPES: Final = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
FILE_WORDS: Final = frozenset({"file", "binary"})

_NUMBERS: Final = frozenset({"minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"})
_COUNTS: Final = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"}
)
SCHEMAS: Final = frozenset({"items", "not", "additionalProperties", "propertyNames", "contains", "if", "then", "else"})
SCHEMA_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
SCHEMA_MAPS: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


PLAIN: Final[Mapping[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(_NUMBERS, _is_number),
    **dict.fromkeys(_COUNTS, _is_count),
    "pattern": lambda value: isinstance(value, str),
    "format": lambda value: isinstance(value, str),
    "uniqueItems": lambda value: isinstance(value, bool),
    "writeOnly": lambda value: value is True,
    "deprecated": lambda value: value is True,
    "const": lambda value: True,  # noqa: ARG005 - any value is one
    "default": lambda value: True,  # noqa: ARG005 - as above
    "contentEncoding": lambda value: isinstance(value, str),
    "contentMediaType": lambda value: isinstance(value, str),
}
"""Keywords whose value stands as it is, where it is one that they may have."""
