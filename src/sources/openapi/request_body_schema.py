"""An operation's request body → how it is made of arguments. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..source import SourceNotes
from .api_operation import FILE_SCHEMA, TYPED_FILE_SCHEMA, ApiBody, BodyField, BodyKind
from .api_parameters import ArgumentTable
from .json_references import ReferencePlace
from .openapi_schemas import Schema, SchemaReader

_PREFERENCE: Final[tuple[BodyKind, ...]] = ("json", "form", "multipart", "text", "binary")
_NOT_FLAT: Final = ("anyOf", "oneOf", "not", "if", "patternProperties")
_MAX_ALL_OF: Final = 64
"""Schemas that the fields of one body may come from."""

_WILD: Final[Mapping[BodyKind, str]] = {
    "json": "application/json",
    "text": "text/plain",
    "binary": "application/octet-stream",
}
"""What is sent where the document leaves the type open, as ``image/*`` does."""
_MEDIA_TYPE: Final = re.compile(r"\s*[\w.+*-]+/[\w.+*-]+\s*(;[\x20-\x7e]*)?", re.ASCII)

BODY: Final = "body"
"""The argument that is the whole body, where its fields cannot be arguments of their own."""


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    place: ReferencePlace
    required: bool


def read_body(place: ReferencePlace, table: ArgumentTable, reader: SchemaReader, notes: SourceNotes) -> ApiBody | None:
    """The body that the ``requestBody`` at this place asks for, its arguments added to the table; None without one."""
    body = reader.followed(place)
    if not isinstance(body.value, dict):
        return None
    media_type, kind, media = _chosen(body.at(body.value.get("content")), notes)
    schema = media.at(media.value.get("schema", {}))
    described = reader.followed(schema).value
    if _is_any_file(media_type, described):
        kind = "binary"
    if kind == "binary":
        return _file(media_type, described, body, table)
    media_type = _WILD.get(kind, media_type) if "*" in media_type else media_type
    if kind == "text":
        return _text(media_type, body, table)
    fields = _fields(schema, reader)
    required = _is_required(body.value, fields)
    if fields is None and kind in {"form", "multipart"}:
        notes.repaired(f"the body of {media_type} has no fields that are known; it takes an object")
    if fields is None:
        whole = reader.read(schema)
        if kind != "json":
            whole = {"type": "object", **whole}
        argument = table.add(BODY, BODY, whole, required=required)
        return ApiBody(kind, media_type, required, argument=argument)
    encoding = media.value.get("encoding")
    taken = [
        _taken(field, kind, encoding if isinstance(encoding, dict) else {}, table, reader, required=required)
        for field in fields
    ]
    return ApiBody(kind, media_type, required, fields=tuple(taken))


def _chosen(content: ReferencePlace, notes: SourceNotes) -> tuple[str, BodyKind, ReferencePlace]:
    """The media type to send: JSON before all others."""
    offered = content.value if isinstance(content.value, dict) else {}
    kinds = {media_type: _kind(media_type) for media_type in offered if _MEDIA_TYPE.fullmatch(media_type)}
    for kind in _PREFERENCE:
        for media_type, value in offered.items():
            if kinds.get(media_type) == kind:
                return media_type.strip(), kind, content.at(value if isinstance(value, dict) else {})
    notes.repaired("the body says no media type; taken as JSON")
    return "application/json", "json", content.at({})


def _is_any_file(media_type: str, schema: Any) -> bool:
    """Whether any type will do, and what is meant is a file."""
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


def _text(media_type: str, body: ReferencePlace, table: ArgumentTable) -> ApiBody:
    required = body.value.get("required") is True
    schema: Schema = {"type": "string", "description": f"The body, {media_type}."}
    return ApiBody("text", media_type, required, argument=table.add(BODY, BODY, schema, required=required))


def _file(media_type: str, described: Any, body: ReferencePlace, table: ArgumentTable) -> ApiBody:
    """One file, of the type that the body or its schema names; else the caller says which of ``media_type`` it is."""
    required = body.value.get("required") is True
    said = described.get("contentMediaType") if isinstance(described, dict) else None
    types = media_type if "*" in media_type else None
    if types is not None and _is_one_type(said):
        media_type, types = str(said).strip(), None
    schema = FILE_SCHEMA if types is None else TYPED_FILE_SCHEMA
    schema = {**schema, "description": f"The body, {media_type}. {schema['description']}"}
    argument = table.add(BODY, BODY, schema, required=required)
    return ApiBody("binary", media_type if types is None else _WILD["binary"], required, argument=argument, types=types)


def _is_required(body: Mapping[str, Any], fields: list[_Field] | None) -> bool:
    """As the document says; where it does not, a body with fields that must be there is needed."""
    said = body.get("required")
    return said if isinstance(said, bool) else any(field.required for field in fields or ())


def _fields(place: ReferencePlace, reader: SchemaReader) -> list[_Field] | None:
    """The fields of an object, those of all its ``allOf``; None where they are not all known, or there are none."""
    places: dict[str, ReferencePlace] = {}
    required: set[str] = set()
    if not _gather(place, reader, places, required, set()) or not places:
        return None
    return [_Field(name, field, name in required) for name, field in places.items()]


def _gather(
    place: ReferencePlace, reader: SchemaReader, places: dict[str, ReferencePlace], required: set[str], seen: set[int]
) -> bool:
    """Add an object's fields to ``places``, and the names that must be there; False where there may be others.

    ``seen`` has the schemas that were gone through, by their identity: again they would add nothing, and few of them
    can refer to one another very often.
    """
    schema = reader.followed(place)
    value = schema.value
    if id(value) in seen:
        return True
    seen.add(id(value))
    if len(seen) > _MAX_ALL_OF or not isinstance(value, dict) or not _is_flat(value):
        return False
    parts, properties, must = value.get("allOf"), value.get("properties"), value.get("required")
    for part in parts if isinstance(parts, list) else []:
        if not _gather(schema.at(part), reader, places, required, seen):
            return False
    for name, part in properties.items() if isinstance(properties, dict) else ():
        if not (isinstance(part, dict) and part.get("readOnly") is True):
            places[name] = schema.at(part)
            if isinstance(part, dict) and part.get("required") is True:
                required.add(name)
    required.update(name for name in (must if isinstance(must, list) else []) if isinstance(name, str))
    return True


def _is_flat(schema: Mapping[str, Any]) -> bool:
    """Whether its fields are those that it names: no choice of forms, and no others that it describes."""
    if schema.get("type", "object") not in ("object", ["object", "null"]) or any(key in schema for key in _NOT_FLAT):
        return False
    return not isinstance(schema.get("additionalProperties"), dict)


def _taken(
    field: _Field,
    kind: BodyKind,
    encoding: Mapping[str, Any],
    table: ArgumentTable,
    reader: SchemaReader,
    *,
    required: bool,
) -> BodyField:
    schema = reader.read(field.place)
    said = encoding.get(field.name)
    encoded: Mapping[str, Any] = said if isinstance(said, dict) else {}
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


def _is_one_type(said: Any) -> bool:
    """Whether it is the type of a part; where several may be, the first guess is as good."""
    return isinstance(said, str) and _MEDIA_TYPE.fullmatch(said) is not None and not set("*,") & set(said)


def _is_file(schema: Schema) -> bool:
    return schema.get("format") == "binary" or ("contentMediaType" in schema and "contentEncoding" not in schema)


def _items(schema: Schema) -> Schema:
    items = schema.get("items")
    return items if isinstance(items, dict) else {}
