"""Decides which media types of a request body callers may choose, in which order, and how each is encoded. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..source import SourceNotes
from .api_operation import BodyKind
from .json_references import DocumentNode
from .openapi_schemas import SchemaReader

MAX_MEDIA_TYPES: Final = 8
"""The maximum number of media types of one body from which a caller may choose; further ones are omitted."""
JSON_PATCH: Final = "application/json-patch+json"

_PREFERENCE: Final[tuple[BodyKind, ...]] = ("json", "form", "multipart", "text", "binary")
_MEDIA_TYPE: Final = re.compile(r"\s*[\w.+*-]+/[\w.+*-]+\s*(;[\x20-\x7e]*)?", re.ASCII)
_PLAIN_JSON: Final = frozenset({"application/json", "text/json", "*/*", "application/*", "application/*+json"})
"""Types under which the same JSON is sent, so that a choice between them would be meaningless."""
_YAML: Final = ("/yaml", "+yaml", "/x-yaml")


@dataclass(frozen=True, slots=True)
class OfferedMediaType:
    """A media type of a request body."""

    media_type: str
    """The declared type; may have wildcards."""
    kind: BodyKind
    media: DocumentNode
    """The Media Type Object."""
    schema: DocumentNode


def offered_media_types(content: DocumentNode, reader: SchemaReader, notes: SourceNotes) -> list[OfferedMediaType]:
    """Returns the types that a body may have, never empty. The first is the default: JSON if the document has it."""
    offered = sorted(_valid(content, reader), key=_rank)
    if not offered:
        notes.repaired("the body has no media type; treated as JSON")
        return [OfferedMediaType("application/json", "json", content.part({}), content.part({}))]
    distinct: dict[str, OfferedMediaType] = {}
    for offer in offered:
        if not _repeats_json(offer, offered[0]):
            distinct.setdefault(_essence(offer.media_type), offer)
    if len(distinct) > MAX_MEDIA_TYPES:
        notes.repaired(f"the body has more than {MAX_MEDIA_TYPES} media types; the others are omitted")
    return list(distinct.values())[:MAX_MEDIA_TYPES]


def is_one_type(declared: Any) -> bool:
    """Whether the declared type is a single media type."""
    return isinstance(declared, str) and _MEDIA_TYPE.fullmatch(declared) is not None and not set("*,") & set(declared)


def _valid(content: DocumentNode, reader: SchemaReader) -> Iterator[OfferedMediaType]:
    for media_type, value in content.value.items() if isinstance(content.value, dict) else ():
        if _MEDIA_TYPE.fullmatch(media_type):
            media = content.part(value if isinstance(value, dict) else {})
            schema = media.part(media.value.get("schema", {}))
            yield OfferedMediaType(media_type.strip(), _kind(media_type, reader.resolve(schema).value), media, schema)


def _rank(offer: OfferedMediaType) -> tuple[int, bool]:
    """The rank by kind. JSON Patch and YAML follow other JSON, because callers rarely mean them."""
    unusual = _essence(offer.media_type) == JSON_PATCH or _plain(offer.media_type).endswith(_YAML)
    return _PREFERENCE.index(offer.kind), unusual


def _repeats_json(offer: OfferedMediaType, first: OfferedMediaType) -> bool:
    """Whether this type would only require as text what the first type sends as JSON."""
    return offer.kind == "text" and first.kind == "json" and offer.schema.value == first.schema.value


def _plain(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


def _essence(media_type: str) -> str:
    """The type without its charset. All types of plain JSON count as the same."""
    plain, _, parameters = media_type.lower().partition(";")
    plain = plain.strip()
    if parameters and not re.fullmatch(r"\s*charset\s*=[^;]*", parameters):
        return f"{plain};{parameters.strip()}"
    return "application/json" if plain in _PLAIN_JSON else plain


def _kind(media_type: str, schema: Any) -> BodyKind:
    plain = _plain(media_type)
    described: Mapping[str, Any] = schema if isinstance(schema, dict) else {}
    if "*/*" in plain and described.get("format") == "binary":
        return "binary"
    if plain.endswith(("/json", "+json")) or plain in {"*/*", "application/*"}:
        return "json"
    if plain == "application/x-www-form-urlencoded":
        return "form"
    if plain.startswith("multipart/"):
        return "multipart"
    if plain.endswith(_YAML) and (described.get("type") in ("object", "array") or "properties" in described):
        return "json"  # JSON is also YAML
    if plain.startswith("text/") or plain.endswith(("/xml", "+xml", *_YAML, "/graphql", "/x-ndjson")):
        return "text"
    return "binary"
