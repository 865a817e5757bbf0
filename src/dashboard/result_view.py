"""A call's result in the form for pages. Pure."""

import json
from typing import Any, Final

import msgspec

from ..protocol.error_codes import ERROR_CLASSES, ErrorCode
from ..protocol.tool_call import AudioContent, EmbeddedResource, ImageContent, ResourceLink, ToolResult, plain_text

IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The image types that can be shown on request. SVG is excluded, because it is a document and may contain scripts."""
MAX_IMAGE_CHARS: Final = 8 * 1024 * 1024
"""The maximum size of an image's Base64. For a larger image, only the type and size are shown."""
MAX_BLOCKS: Final = 100


def shown_result(result: ToolResult) -> dict[str, Any]:
    """The values of the template ``tool_result``: ``ok``, ``error``, ``data``, ``blocks``, ``facts``."""
    metadata, error = result.metadata, result.error
    structured = None if result.structured is msgspec.UNSET else result.structured
    blocks = [_block(block) for block in result.outputs[:MAX_BLOCKS]]
    # Most tools also send their data as text.
    if structured is not None:
        blocks = [block for block in blocks if not (block["kind"] == "text" and _is_json_of(block["text"], structured))]
    return {
        "ok": error is None,
        "outcome": result.outcome,
        "error": None if error is None else {**msgspec.structs.asdict(error), "advice": _advice(error.code)},
        "data": structured,
        "has_data": structured is not None,
        "blocks": blocks,
        "more": max(0, len(result.outputs) - MAX_BLOCKS),
        "metadata": metadata,
    }


def _advice(code: str) -> str:
    return ERROR_CLASSES[ErrorCode(code)].advice if code in set(ErrorCode) else ""


def _block(block: Any) -> dict[str, Any]:
    match block:
        case ImageContent():
            shows = block.mime_type in IMAGE_TYPES and len(block.data) <= MAX_IMAGE_CHARS
            size = len(block.data) * 3 // 4
            return {"kind": "image", "type": block.mime_type, "size": size, "data": block.data if shows else None}
        case AudioContent():
            return {"kind": "other", "text": f"audio, {block.mime_type}", "size": len(block.data) * 3 // 4}
        case ResourceLink():
            return {"kind": "link", "text": block.title or block.name, "uri": block.uri}
        case EmbeddedResource() if plain_text(block) is None:
            uri = str(block.resource.get("uri", ""))
            return {
                "kind": "other",
                "text": f"a binary resource, {uri}",
                "size": len(str(block.resource.get("blob", ""))) * 3 // 4,
            }
    return {"kind": "text", "text": plain_text(block) or ""}


def _is_json_of(text: str, data: Any) -> bool:
    if len(text) > 1_000_000:
        return False
    try:
        return bool(json.loads(text) == data)
    except (ValueError, RecursionError):
        return isinstance(data, str) and text == data
