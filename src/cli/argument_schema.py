"""The part of a tool's JSON Schema that the command line needs: types, choices and array items. Pure."""

import json
from collections.abc import Mapping
from itertools import chain
from typing import Any, Final

Schema = Mapping[str, Any]

_ALL: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})


def types_in_words(part: Schema, root: Schema) -> str:
    """The values that a subschema accepts, for people: ``string``, ``integer or null``, ``any``, ``kimi or glm``."""
    values = choices(part, root)
    if values:
        return " or ".join(written(value) for value in values)
    types = types_of(part, root)
    if types == _ALL:
        return "any"
    words = " or ".join(sorted(types, key=lambda name: (name == "null", name)))
    if types == {"array"}:
        items = items_of(part, root)
        return f"array of {types_in_words(items, root)}" if items else words
    return words


def choices(part: Schema, root: Schema) -> list[Any]:
    """The values that a subschema enumerates; empty if it accepts other values too."""
    part = _resolve(part, root)
    for keyword in ("anyOf", "oneOf"):
        if keyword in part:
            each = [choices(option, root) for option in part[keyword]]
            if any(isinstance(value, str) for value in chain.from_iterable(each)):
                # A schema, such as that of a thinking depth, may accept names or a boolean: then true and false are
                # choices, too.
                each = [
                    values or ([True, False] if types_of(option, root) == {"boolean"} else [])
                    for option, values in zip(part[keyword], each, strict=True)
                ]
            return list(chain.from_iterable(each)) if all(each) else []
    if "enum" in part:
        return list(part["enum"])
    if "const" in part:
        return [part["const"]]
    return [None] if part.get("type") == "null" else []


def written(choice: Any) -> str:
    """A value as a user types it after ``key=``."""
    return choice if isinstance(choice, str) else json.dumps(choice)


def types_of(part: Schema, root: Schema) -> frozenset[str]:
    """The JSON types that a subschema accepts; all types if it does not restrict them."""
    part = _resolve(part, root)
    for keyword in ("anyOf", "oneOf"):
        if keyword in part:
            return frozenset().union(*(types_of(choice, root) for choice in part[keyword]))
    if "type" in part:
        types = part["type"]
        return frozenset([types] if isinstance(types, str) else types)
    if "enum" in part or "const" in part:
        return frozenset(_type_of(value) for value in part.get("enum", [part.get("const")]))
    return _ALL


def takes_text(part: Schema, root: Schema, text: str) -> bool:
    """Whether the subschema accepts the text as a string."""
    part = _resolve(part, root)
    choices = [*part.get("anyOf", ()), *part.get("oneOf", ())]
    if choices:
        return any(takes_text(choice, root, text) for choice in choices)
    if "enum" in part or "const" in part:
        return text in part.get("enum", [part.get("const")])
    return "string" in types_of(part, root)


def items_of(part: Schema, root: Schema) -> Schema:
    """The schema of the array's items; the empty schema, which accepts anything, by default."""
    part = _resolve(part, root)
    for choice in (part, *part.get("anyOf", ()), *part.get("oneOf", ())):
        resolved = _resolve(choice, root)
        if "items" in resolved:
            items: Schema = resolved["items"]
            return items
    return {}


def _resolve(part: Schema, root: Schema) -> Schema:
    """Follow ``$ref`` within the schema (``#/$defs/Name``), as pydantic writes references."""
    seen = 0
    while "$ref" in part and seen < 32:  # a schema may refer to itself
        target: Any = root
        for step in part["$ref"].removeprefix("#/").split("/"):
            target = target.get(step, {}) if isinstance(target, Mapping) else {}
        part, seen = target, seen + 1
    return part


def _type_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"
