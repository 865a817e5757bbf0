"""File parts of A2A 1.0, made from the images, audio and resources of a result. Pure."""

import base64
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from ..tool_call import AudioContent, ContentBlock, EmbeddedResource, ImageContent, ResourceLink

_TEXT: Final = "text/plain"
_BYTES: Final = "application/octet-stream"


def file_parts(blocks: Iterable[ContentBlock]) -> list[dict[str, Any]]:
    """The parts of all blocks that are not text. Links have their URL, other parts their bytes."""
    return [part for block in blocks if (part := _part(block)) is not None]


def _part(block: ContentBlock) -> dict[str, Any] | None:
    match block:
        case ImageContent() | AudioContent():
            return {"raw": block.data, "mediaType": block.mime_type}
        case ResourceLink():
            media_type = {} if block.mime_type is None else {"mediaType": block.mime_type}
            return {"url": block.uri, "filename": block.name, **media_type}
        case EmbeddedResource():
            return _embedded(block.resource)
        case _:
            return None


def _embedded(resource: dict[str, Any]) -> dict[str, Any]:
    blob = resource.get("blob")
    is_text = not isinstance(blob, str)
    raw = base64.b64encode(str(resource.get("text", "")).encode()).decode() if is_text else blob
    name = unquote(urlsplit(str(resource.get("uri", ""))).path.rsplit("/", 1)[-1])
    media_type = resource.get("mimeType") or (_TEXT if is_text else _BYTES)
    return {"raw": raw, "mediaType": media_type, **({"filename": name} if name else {})}
