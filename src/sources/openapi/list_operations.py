"""Recognizes operations that answer with a list that may have further pages. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from .json_references import BrokenReferenceError, DocumentNode, JsonReferences

_MAX_LEVELS: Final = 4
"""The number of levels of composed schemas that are followed."""
_COMPOSED: Final = ("allOf", "anyOf", "oneOf")


def may_have_pages(operation: DocumentNode, path: str, references: JsonReferences) -> bool:
    """Whether a GET operation's successful answer may be a page of a list.

    It may be a page if the document describes an array or a ``Link`` header. If the path does not end with a parameter,
    it may also be a page if the document describes an object with an array, or no content.
    """
    responses = operation.value.get("responses")
    if not isinstance(responses, dict):
        return False
    names_one = path.rstrip("/").endswith("}")
    for status, declared in responses.items():
        if not str(status).startswith("2"):
            continue
        try:
            response = references.resolve(operation.part(declared))
        except BrokenReferenceError:
            return not names_one
        value = response.value if isinstance(response.value, dict) else {}
        headers = value.get("headers")
        if isinstance(headers, dict) and any(str(name).lower() == "link" for name in headers):
            return True
        schemas = list(_json_schemas(response))
        if not schemas:
            return not names_one
        return any(_is_list(schema, references, envelope=not names_one) for schema in schemas)
    return False


def _json_schemas(response: DocumentNode) -> Iterator[DocumentNode]:
    content = response.value.get("content") if isinstance(response.value, dict) else None
    for media_type, media in content.items() if isinstance(content, dict) else ():
        if "json" in media_type.lower() or "*" in media_type:
            schema = media.get("schema") if isinstance(media, dict) else None
            if isinstance(schema, dict):
                yield response.part(schema)


def _is_list(node: DocumentNode, references: JsonReferences, *, envelope: bool, level: int = 0) -> bool:
    try:
        node = references.resolve(node)
    except BrokenReferenceError:
        return envelope
    schema = node.value
    if not isinstance(schema, dict) or level > _MAX_LEVELS:
        return False
    if _is_array(schema):
        return True
    properties = schema.get("properties")
    if envelope and isinstance(properties, dict):
        for part in properties.values():
            if _refers_to_array(node.part(part), references):
                return True
    parts = [part for key in _COMPOSED if isinstance(schema.get(key), list) for part in schema[key]]
    return any(_is_list(node.part(part), references, envelope=envelope, level=level + 1) for part in parts[:8])


def _refers_to_array(node: DocumentNode, references: JsonReferences) -> bool:
    try:
        return _is_array(references.resolve(node).value)
    except BrokenReferenceError:
        return False


def _is_array(schema: Any) -> bool:
    declared: Mapping[str, Any] = schema if isinstance(schema, dict) else {}
    kind = declared.get("type")
    return kind == "array" or (isinstance(kind, list) and "array" in kind)
