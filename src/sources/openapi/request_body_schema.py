"""Reads the request body of an operation: how it is built from arguments. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..source import SourceNotes
from .api_operation import FILE_SCHEMA, TYPED_FILE_SCHEMA, ApiBody, BodyField, BodyKind
from .api_parameters import ArgumentTable
from .json_references import DocumentNode
from .openapi_schemas import Schema, SchemaReader

_PREFERENCE: Final[tuple[BodyKind, ...]] = ("json", "form", "multipart", "text", "binary")
_NON_FLAT_KEYWORDS: Final = ("anyOf", "oneOf", "not", "if", "patternProperties")
_MAX_ALL_OF: Final = 64
"""How many ``allOf`` schemas may contribute fields to one body."""

_WILDCARD_DEFAULTS: Final[Mapping[BodyKind, str]] = {
    "json": "application/json",
    "text": "text/plain",
    "binary": "application/octet-stream",
}
"""The types sent if the document leaves the type open, such as ``image/*``."""
_MEDIA_TYPE: Final = re.compile(r"\s*[\w.+*-]+/[\w.+*-]+\s*(;[\x20-\x7e]*)?", re.ASCII)

BODY: Final = "body"
"""The argument that is the whole body, if its fields cannot be separate arguments."""


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    node: DocumentNode
    required: bool


def read_body(node: DocumentNode, table: ArgumentTable, reader: SchemaReader, notes: SourceNotes) -> ApiBody | None:
    """Reads the ``requestBody`` at this node and adds its arguments to the table; None without one."""
    body = reader.resolve(node)
    if not isinstance(body.value, dict):
        return None
    media_type, kind, media = _choose_media_type(body.part(body.value.get("content")), notes)
    schema = media.part(media.value.get("schema", {}))
    described = reader.resolve(schema).value
    if _is_any_file(media_type, described):
        kind = "binary"
    if kind == "binary":
        return _file(media_type, described, body, table)
    media_type = _WILDCARD_DEFAULTS.get(kind, media_type) if "*" in media_type else media_type
    if kind == "text":
        return _text(media_type, body, table)
    fields = _fields(schema, reader)
    required = _is_required(body.value, fields)
    if fields is None and kind in {"form", "multipart"}:
        notes.repaired(f"the body of {media_type} has no known fields; it takes an object")
    if fields is None:
        whole = reader.read(schema)
        if kind != "json":
            whole = {"type": "object", **whole}
        argument = table.add(BODY, BODY, whole, required=required)
        return ApiBody(kind, media_type, required, argument=argument)
    encoding = media.value.get("encoding")
    body_fields = [
        _read_field(field, kind, encoding if isinstance(encoding, dict) else {}, table, reader, required=required)
        for field in fields
    ]
    return ApiBody(kind, media_type, required, fields=tuple(body_fields))


def _choose_media_type(content: DocumentNode, notes: SourceNotes) -> tuple[str, BodyKind, DocumentNode]:
    """Chooses the media type to send: JSON, if offered."""
    offered = content.value if isinstance(content.value, dict) else {}
    kinds = {media_type: _kind(media_type) for media_type in offered if _MEDIA_TYPE.fullmatch(media_type)}
    for kind in _PREFERENCE:
        for media_type, value in offered.items():
            if kinds.get(media_type) == kind:
                return media_type.strip(), kind, content.part(value if isinstance(value, dict) else {})
    notes.repaired("the body has no media type; treated as JSON")
    return "application/json", "json", content.part({})


def _is_any_file(media_type: str, schema: Any) -> bool:
    """Whether the body is a file of any type."""
    return "*/*" in media_type and isinstance(schema, dict) and schema.get("format") == "binary"


def _kind(media_type: str) -> BodyKind:
    plain = media_type.partition(";")[0].strip().lower()
    if plain.endswith(("/json", "+json")) or plain in {"*/*", "application/*"}:
        return "json"
    if plain == "application/x-www-form-urlencoded":
        return "form"
    if plain.startswith("multipart/"):
        return "multipart"
    if plain.startswith("text/") or plain.endswith(("/xml", "+xml", "/yaml", "+yaml", "/graphql", "/x-ndjson")):
        return "text"
    return "binary"


def _text(media_type: str, body: DocumentNode, table: ArgumentTable) -> ApiBody:
    required = body.value.get("required") is True
    schema: Schema = {"type": "string", "description": f"The body, {media_type}."}
    return ApiBody("text", media_type, required, argument=table.add(BODY, BODY, schema, required=required))


def _file(media_type: str, described: Any, body: DocumentNode, table: ArgumentTable) -> ApiBody:
    """Returns a file body of the declared type; if that is open, the caller chooses one within ``media_type``."""
    required = body.value.get("required") is True
    declared = described.get("contentMediaType") if isinstance(described, dict) else None
    types = media_type if "*" in media_type else None
    if types is not None and _is_one_type(declared):
        media_type, types = str(declared).strip(), None
    schema = FILE_SCHEMA if types is None else TYPED_FILE_SCHEMA
    schema = {**schema, "description": f"The body, {media_type}. {schema['description']}"}
    argument = table.add(BODY, BODY, schema, required=required)
    return ApiBody(
        "binary",
        media_type if types is None else _WILDCARD_DEFAULTS["binary"],
        required,
        argument=argument,
        types=types,
    )


def _is_required(body: Mapping[str, Any], fields: list[_Field] | None) -> bool:
    """Whether the body is required: as declared, else if it has required fields."""
    declared = body.get("required")
    return declared if isinstance(declared, bool) else any(field.required for field in fields or ())


def _fields(node: DocumentNode, reader: SchemaReader) -> list[_Field] | None:
    """Returns the fields of an object, ``allOf`` included; None if there are none or others may exist."""
    nodes: dict[str, DocumentNode] = {}
    required: set[str] = set()
    if not _collect_fields(node, reader, nodes, required, set()) or not nodes:
        return None
    return [_Field(name, field, name in required) for name, field in nodes.items()]


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
    """Whether its fields are exactly its properties: no alternatives and no additional properties."""
    if schema.get("type", "object") not in ("object", ["object", "null"]) or any(
        key in schema for key in _NON_FLAT_KEYWORDS
    ):
        return False
    return not isinstance(schema.get("additionalProperties"), dict)


def _read_field(
    field: _Field,
    kind: BodyKind,
    encoding: Mapping[str, Any],
    table: ArgumentTable,
    reader: SchemaReader,
    *,
    required: bool,
) -> BodyField:
    schema = reader.read(field.node)
    declared = encoding.get(field.name)
    encoded: Mapping[str, Any] = declared if isinstance(declared, dict) else {}
    content_type = encoded.get("contentType")
    file = kind == "multipart" and (_is_file(schema) or _is_file(_items(schema)))
    if file:
        schema = {"type": "array", "items": FILE_SCHEMA} if schema.get("type") == "array" else FILE_SCHEMA
    argument = table.add(BODY, field.name, schema, required=required and field.required)
    return BodyField(
        field.name,
        argument,
        file=file,
        content_type=content_type if _is_one_type(content_type) else None,
        deep=encoded.get("style") == "deepObject",
        joined=kind == "form" and encoded.get("explode") is False,
    )


def _is_one_type(declared: Any) -> bool:
    """Whether it is a single media type."""
    return isinstance(declared, str) and _MEDIA_TYPE.fullmatch(declared) is not None and not set("*,") & set(declared)


def _is_file(schema: Schema) -> bool:
    return schema.get("format") == "binary" or ("contentMediaType" in schema and "contentEncoding" not in schema)


def _items(schema: Schema) -> Schema:
    items = schema.get("items")
    return items if isinstance(items, dict) else {}
