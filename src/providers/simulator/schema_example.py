"""Generates a value that fits a JSON Schema, as a model's simulated answer. Pure.

Supports types, properties, items, enum, const, local ``$ref``, anyOf, oneOf, allOf, and limits on numbers, lengths and
items. Ignores other keywords (``pattern``, ``not``, ``if``).
"""

from collections.abc import Mapping
from typing import Any, Final

_DEEPEST: Final = 8
"""Below this depth only required properties are generated, so that recursive schemas terminate."""
_FORMATS: Final = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "uri": "https://example.com/simulated",
    "email": "simulated@example.com",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def value_for(schema: Mapping[str, Any]) -> Any:
    """Returns a value for the schema. Unconstrained strings say that they are simulated."""
    return _value(schema, schema, "answer", 0)


def _value(node: Any, root: Mapping[str, Any], name: str, depth: int) -> Any:
    if not isinstance(node, Mapping):
        return f"Simulated {name}"
    node = _resolved(node, root)
    if "const" in node:
        return node["const"]
    if node.get("enum"):
        return node["enum"][0]
    match _type(node):
        case "object":
            return _object(node, root, depth)
        case "array":
            return _array(node, root, name, depth)
        case "string":
            return _string(node, name)
        case "integer" | "number" as kind:
            return _number(node, whole=kind == "integer")
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return f"Simulated {name}"


def _resolved(node: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    """Resolves references and combinations. Uses the first alternative that is not null."""
    merged = dict(node)
    for _ in range(_DEEPEST):
        if "$ref" in merged:
            merged = {**_referenced(str(merged.pop("$ref")), root), **merged}
        for key in ("anyOf", "oneOf"):
            choices = [choice for choice in merged.pop(key, ()) if choice != {"type": "null"}]
            merged |= choices[0] if choices else {}
        for part in merged.pop("allOf", ()):
            properties = {**merged.get("properties", {}), **part.get("properties", {})}
            required = [*merged.get("required", ()), *part.get("required", ())]
            merged |= part
            merged |= {"properties": properties} if properties else {}
            merged |= {"required": required} if required else {}
        if not {"$ref", "anyOf", "oneOf", "allOf"} & merged.keys():
            break
    return merged


def _referenced(reference: str, root: Mapping[str, Any]) -> dict[str, Any]:
    node: Any = root
    for key in reference.removeprefix("#").strip("/").split("/"):
        node = node.get(key.replace("~1", "/").replace("~0", "~"), {}) if key and isinstance(node, Mapping) else node
    return dict(node) if isinstance(node, Mapping) else {}


def _type(node: Mapping[str, Any]) -> str | None:
    kind = node.get("type")
    if isinstance(kind, list):
        return next((name for name in kind if name != "null"), "null")
    if kind is None:
        return "object" if "properties" in node else "array" if "items" in node else None
    return str(kind)


def _object(node: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    properties = node.get("properties") or {}
    names = list(node.get("required") or ()) if depth >= _DEEPEST else list(properties)
    names += [name for name in node.get("required") or () if name not in names]
    return {name: _value(properties.get(name), root, name, depth + 1) for name in names}


def _array(node: Mapping[str, Any], root: Mapping[str, Any], name: str, depth: int) -> list[Any]:
    least = int(node.get("minItems") or 0)
    number = least if depth >= _DEEPEST or node.get("maxItems") == 0 else max(1, least)
    return [_value(node.get("items"), root, name, depth + 1) for _ in range(number)]


def _string(node: Mapping[str, Any], name: str) -> str:
    text = _FORMATS.get(str(node.get("format")), f"Simulated {name.replace('_', ' ')}")
    text = text.ljust(int(node.get("minLength") or 0), ".")
    return text[: node["maxLength"]] if "maxLength" in node else text


def _number(node: Mapping[str, Any], *, whole: bool) -> int | float:
    step = 1 if whole else 0.5
    low, high = node.get("minimum"), node.get("maximum")
    if "exclusiveMinimum" in node:
        low = node["exclusiveMinimum"] + step
    if "exclusiveMaximum" in node:
        high = node["exclusiveMaximum"] - step
    value = 1 if low is None or low <= 1 else low
    value = value if high is None or value <= high else high
    multiple = node.get("multipleOf")
    value = -(-value // multiple) * multiple if multiple else value
    return int(value) if whole else float(value)
