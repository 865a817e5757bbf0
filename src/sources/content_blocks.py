"""Content blocks as MCP has them, from servers and agents: read as text, and passed on if they are valid. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ..protocol.tool_call import ContentBlock
from ..tools import ToolOutput

_MAX_MIME_CHARS: Final = 255
_MIME: Final = re.compile(r"[\w.+!#$&^-]+/[\w.+!#$&^-]+(?:\s*;[ -~]*)?", re.ASCII)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")


def read_answer(content: Sequence[Mapping[str, Any]], structured: Any) -> ToolOutput | str:
    """Returns a successful result: its text, its structured data if any, and its images, audio and resources unchanged.

    Text resources become text.
    """
    text = "\n".join(filter(None, map(block_text, content)))
    blocks = tuple(block for part in content if (block := _block(part)) is not None)
    if structured is not None:
        return ToolOutput(text or None, structured, blocks)
    return ToolOutput(text, blocks=blocks) if blocks else text


def _block(block: Mapping[str, Any]) -> ContentBlock | None:
    """Returns a content block unchanged; None if its text is complete or it is invalid.

    Vendors reject a whole conversation for one invalid image.
    """
    match block:
        case {"type": "image" | "audio", "mimeType": str(mime), "data": str(data)} if not (
            _is_mime(mime) and _is_base64(data)
        ):
            return None
        case {"type": "resource", "resource": {"blob": blob}} if not (isinstance(blob, str) and _is_base64(blob)):
            return None
        case {"type": "image" | "audio" | "resource_link"} | {"type": "resource", "resource": {"blob": _}}:
            try:
                converted: ContentBlock = msgspec.convert(block, ContentBlock)
            except msgspec.ValidationError:
                return None
            return converted
        case _:
            return None


def block_text(block: Mapping[str, Any]) -> str:
    """Returns a content block as text: its text, or a description."""
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image" | "audio" as kind, "mimeType": str(mime), "data": str(data)}:
            if not _is_mime(mime):
                return f"[{kind}, omitted: its MIME type is invalid]"
            if not _is_base64(data):
                return f"[{kind}, {mime}, omitted: its data is not base64]"
            return f"[{kind}, {mime}, {len(data) // 4 * 3 - data[-2:].count('='):,} bytes]"
        case {"type": "resource_link", "uri": uri}:
            return f"[{block.get('title') or block.get('name') or 'resource'}: {uri}]"
        case {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": "resource", "resource": {"uri": uri, "blob": str(blob)}} if not _is_base64(blob):
            return f"[resource: {uri}, omitted: its data is not base64]"
        case {"type": "resource", "resource": {"uri": uri}}:
            return f"[resource: {uri}]"
        case _:
            return f"[{block.get('type', 'content')}]"


def _is_mime(text: str) -> bool:
    return len(text) <= _MAX_MIME_CHARS and _MIME.fullmatch(text) is not None


def _is_base64(text: str) -> bool:
    """Whether this is base64 by RFC 4648: without line breaks, and padded."""
    return len(text) % 4 == 0 and _BASE64.fullmatch(text) is not None
