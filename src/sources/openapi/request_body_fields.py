"""Finds the fields of a request body that can be separate arguments. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from .json_references import DocumentNode
from .openapi_schemas import SchemaReader

_NON_FLAT_KEYWORDS: Final = ("anyOf", "oneOf", "not", "if", "patternProperties")
_MAX_ALL_OF: Final = 64
"""The maximum number of ``allOf`` schemas that contribute fields to one body."""


@dataclass(frozen=True, slots=True)
class DeclaredField:
    """A field of a body, as declared in the document."""

    name: str
    node: DocumentNode
    required: bool


def body_fields(node: DocumentNode, reader: SchemaReader) -> list[DeclaredField] | None:
    """Returns the fields of an object, including those of ``allOf``; None if there are none, or others may exist."""
    nodes: dict[str, DocumentNode] = {}
    required: set[str] = set()
    if not _collect_fields(node, reader, nodes, required, set()) or not nodes:
        return None
    return [DeclaredField(name, field, name in required) for name, field in nodes.items()]


def _collect_fields(
    node: DocumentNode, reader: SchemaReader, nodes: dict[str, DocumentNode], required: set[str], seen: set[int]
) -> bool:
    """Collects an object's fields in ``nodes`` and the required names; False if other fields may exist.

    ``seen`` contains the ids of visited schemas, because a few schemas can refer to each other very often.
    """
    schema = reader.resolve(node)
    value = schema.value
    if id(value) in seen:
        return True
    seen.add(id(value))
    if len(seen) > _MAX_ALL_OF or not isinstance(value, dict) or not _is_flat(value):
        return False
    parts, properties, must = value.get("allOf"), value.get("properties"), value.get("required")
    for part in parts if isinstance(parts, list) else []:
        if not _collect_fields(schema.part(part), reader, nodes, required, seen):
            return False
    for name, part in properties.items() if isinstance(properties, dict) else ():
        if not (isinstance(part, dict) and part.get("readOnly") is True):
            nodes[name] = schema.part(part)
            if isinstance(part, dict) and part.get("required") is True:
                required.add(name)
    required.update(name for name in (must if isinstance(must, list) else []) if isinstance(name, str))
    return True


def _is_flat(schema: Mapping[str, Any]) -> bool:
    """Whether an object's fields are exactly its properties: it has no alternatives and no additional properties."""
    if schema.get("type", "object") not in ("object", ["object", "null"]) or any(
        key in schema for key in _NON_FLAT_KEYWORDS
    ):
        return False
    return not isinstance(schema.get("additionalProperties"), dict)
