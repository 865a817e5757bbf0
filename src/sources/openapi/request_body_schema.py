"""Reads the request body of an operation: how it is built from arguments. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from ..source import SourceNotes
from .api_operation import FILE_SCHEMA, TYPED_FILE_SCHEMA, ApiBody, BodyField, BodyKind
from .api_parameters import ArgumentTable
from .example_types import accept_example, examples_of
from .json_references import DocumentNode
from .openapi_schemas import Schema, SchemaReader
from .request_body_fields import DeclaredField, body_fields
from .request_media_types import JSON_PATCH, OfferedMediaType, is_one_type, offered_media_types

BODY: Final = "body"
"""The argument with the whole body, if its fields cannot be separate arguments."""
FILES: Final = "files"
"""The argument with the files of a multipart body without declared fields."""
CONTENT_TYPE: Final = "content_type"
"""The argument that chooses between the media types of a body."""

_WILDCARD_DEFAULTS: Final[Mapping[BodyKind, str]] = {
    "json": "application/json",
    "text": "text/plain",
    "binary": "application/octet-stream",
}
"""The types sent if the document leaves the type open, such as ``image/*``."""
_ANY_TYPE: Final = "*/*"
_JSON_PATCH_SCHEMA: Final[Schema] = {
    "type": "array",
    "items": {"type": "object"},
    "description": "A JSON Patch (RFC 6902): operations, each with op, path and usually value.",
}
_FILES_SCHEMA: Final[Schema] = {
    "type": "object",
    "description": "The files of the body by field name, one or several per field.",
    "additionalProperties": {"anyOf": [TYPED_FILE_SCHEMA, {"type": "array", "items": TYPED_FILE_SCHEMA}]},
}


class _BodyArguments:
    """The arguments of a body. Fields of the same name in several media types share one argument."""

    def __init__(self, table: ArgumentTable) -> None:
        self._table = table
        self._arguments: dict[tuple[str, bool], str] = {}
        self._first = True
        self._used: set[str] = set()

    def add(self, name: str, schema: Schema, *, required: bool, whole: bool = False) -> str:
        """Adds the argument of a field, or of the ``whole`` body; returns its name."""
        argument = self._arguments.get((name, whole))
        if argument is None:
            argument = self._table.add(BODY, name, schema, required=required and self._first)
            self._arguments[name, whole] = argument
        else:
            self._table.widen(argument, schema)
            if not required:
                self._table.make_optional(argument)
        self._used.add(argument)
        return argument

    def end_media_type(self) -> None:
        """Makes the arguments that this media type lacks optional. An argument is required only if all media types
        require it.
        """
        for argument in set(self._arguments.values()) - self._used:
            self._table.make_optional(argument)
        self._used.clear()
        self._first = False


def read_body(node: DocumentNode, table: ArgumentTable, reader: SchemaReader, notes: SourceNotes) -> ApiBody | None:
    """Reads the ``requestBody`` at this node and adds its arguments to the table; None if there is none."""
    body = reader.resolve(node)
    if not isinstance(body.value, dict):
        return None
    arguments = _BodyArguments(table)
    bodies: list[ApiBody] = []
    for offer in offered_media_types(body.part(body.value.get("content")), reader, notes):
        bodies.append(_read_media_type(offer, body.value, arguments, reader, notes))
        arguments.end_media_type()
    first, *others = bodies
    if not others:
        return first
    schema: Schema = {
        "type": "string",
        "enum": [each.declared_type for each in bodies],
        "description": f"The type of the body. Default: {first.declared_type}, or the first with all given arguments.",
    }
    choice = table.add(BODY, CONTENT_TYPE, schema, required=False)
    return replace(first, choice=choice, others=tuple(others))


def _read_media_type(
    offer: OfferedMediaType,
    body: Mapping[str, Any],
    arguments: _BodyArguments,
    reader: SchemaReader,
    notes: SourceNotes,
) -> ApiBody:
    kind, declared_type = offer.kind, offer.media_type
    if kind == "binary":
        return _file(offer, reader.resolve(offer.schema).value, body, arguments)
    media_type = _WILDCARD_DEFAULTS.get(kind, declared_type) if "*" in declared_type else declared_type
    fields = None if kind == "text" else body_fields(offer.schema, reader)
    required = _is_required(body, fields)
    if fields is not None:
        read_fields = _read_fields(fields, offer, arguments, reader, required=required)
        return ApiBody(kind, media_type, required, fields=read_fields, declared_type=declared_type)
    if kind in {"form", "multipart"}:
        notes.repaired(f"the body of {media_type} has no known fields; it takes an object")
    schema = _whole_schema(offer, reader)
    if kind != "multipart":
        argument = arguments.add(BODY, schema, required=required, whole=True)
        return ApiBody(kind, media_type, required, argument=argument, declared_type=declared_type)
    # Either may be missing, because a multipart body may have only files.
    argument = arguments.add(BODY, schema, required=False, whole=True)
    files = arguments.add(FILES, _FILES_SCHEMA, required=False, whole=True)
    return ApiBody(kind, media_type, required, argument=argument, files_argument=files, declared_type=declared_type)


def _whole_schema(offer: OfferedMediaType, reader: SchemaReader) -> Schema:
    """The schema of a body that is a single argument."""
    if offer.kind == "text":
        return {"type": "string", "description": f"The body, {offer.media_type}."}
    schema = reader.read(offer.schema)
    for example in examples_of(offer.media.value):
        accept_example(schema, example)
    if offer.kind == "json":
        patch = offer.media_type.lower().startswith(JSON_PATCH) and schema.get("type", "object") == "object"
        return _JSON_PATCH_SCHEMA if patch else schema
    if schema.get("type", "object") != "object" or any(_is_file(part) for part in _parts(schema, reader)):
        return {"type": "object", "description": "The fields of the body that are not files."}
    return {"type": "object", **schema}


def _parts(schema: Schema, reader: SchemaReader) -> Iterator[Schema]:
    parts: list[Any] = [schema, *reader.definitions.values()]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            yield part
            parts.extend(part.values())
        elif isinstance(part, list):
            parts.extend(part)


def _file(offer: OfferedMediaType, described: Any, body: Mapping[str, Any], arguments: _BodyArguments) -> ApiBody:
    """Returns a file body of the declared type. If the type is open, the caller chooses one within ``media_type``."""
    required, media_type = body.get("required") is True, offer.media_type
    declared = described.get("contentMediaType") if isinstance(described, dict) else None
    types = media_type if "*" in media_type else None
    if types is not None and is_one_type(declared):
        media_type, types = str(declared).strip(), None
    schema = FILE_SCHEMA if types is None else TYPED_FILE_SCHEMA
    schema = {**schema, "description": f"The body, {media_type}. {schema['description']}"}
    return ApiBody(
        "binary",
        media_type if types is None else _WILDCARD_DEFAULTS["binary"],
        required,
        argument=arguments.add(BODY, schema, required=required, whole=True),
        types=types,
        declared_type=offer.media_type,
    )


def _is_required(body: Mapping[str, Any], fields: list[DeclaredField] | None) -> bool:
    """Whether the body is required: as declared, or else whether it has required fields."""
    declared = body.get("required")
    return declared if isinstance(declared, bool) else any(field.required for field in fields or ())


def _read_fields(
    fields: list[DeclaredField],
    offer: OfferedMediaType,
    arguments: _BodyArguments,
    reader: SchemaReader,
    *,
    required: bool,
) -> tuple[BodyField, ...]:
    schemas = {field.name: reader.read(field.node) for field in fields}
    for example in examples_of(offer.media.value):
        accept_example({"type": "object", "properties": schemas}, example)
    encoding = offer.media.value.get("encoding")
    declared: Mapping[str, Any] = encoding if isinstance(encoding, dict) else {}
    return tuple(
        _read_field(field, schemas[field.name], offer.kind, declared.get(field.name), arguments, required=required)
        for field in fields
    )


def _read_field(
    field: DeclaredField, schema: Schema, kind: BodyKind, encoding: Any, arguments: _BodyArguments, *, required: bool
) -> BodyField:
    encoded: Mapping[str, Any] = encoding if isinstance(encoding, dict) else {}
    content_type = encoded.get("contentType")
    file = kind == "multipart" and (_is_file(schema) or _is_file(_items(schema)))
    types = None
    if file:
        declared = content_type or schema.get("contentMediaType") or _items(schema).get("contentMediaType")
        if is_one_type(declared):
            content_type, file_schema = declared, FILE_SCHEMA
        else:
            types = declared if isinstance(declared, str) else _ANY_TYPE
            file_schema = TYPED_FILE_SCHEMA
        schema = {"type": "array", "items": file_schema} if schema.get("type") == "array" else file_schema
    needed = required and field.required
    return BodyField(
        field.name,
        arguments.add(field.name, schema, required=needed),
        required=needed,
        file=file,
        content_type=content_type if is_one_type(content_type) else None,
        types=types,
        deep=encoded.get("style") == "deepObject",
        joined=kind == "form" and encoded.get("explode") is False,
        allow_reserved=kind == "form" and encoded.get("allowReserved") is True,
    )


def _is_file(schema: Schema) -> bool:
    return schema.get("format") == "binary" or ("contentMediaType" in schema and "contentEncoding" not in schema)


def _items(schema: Schema) -> Schema:
    items = schema.get("items")
    return items if isinstance(items, dict) else {}
