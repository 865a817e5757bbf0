"""MCP content blocks from servers and agents. Valid blocks are passed on; a text describes each invalid block. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ..protocol.content_text import described_text
from ..protocol.tool_call import ContentBlock, Json, TextContent, plain_text
from ..tools import ToolOutput

_MAX_MIME_CHARS: Final = 255
_MIME: Final = re.compile(r"[\w.+!#$&^-]+/[\w.+!#$&^-]+(?:\s*;[ -~]*)?", re.ASCII)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")


def server_answer(
    content: Sequence[Mapping[str, Any]], structured: Any = None, meta: dict[str, Json] | None = None
) -> ToolOutput | str:
    """Returns an MCP server's result unchanged: its blocks in their order, its structured data and its ``_meta``."""
    blocks = tuple(map(typed_block, content))
    if structured is None and meta is None and len(blocks) == 1:
        (block,) = blocks
        if isinstance(block, TextContent) and block == TextContent(block.text):
            return block.text
    data = msgspec.UNSET if structured is None else structured
    return ToolOutput(data=data, content=blocks, meta=meta)


def read_answer(content: Sequence[Mapping[str, Any]], structured: Any) -> ToolOutput | str:
    """Returns a successful result: its text, its structured data if any, and its images, audio and resources.

    The text describes the latter. Text resources become text.
    """
    typed = tuple(map(typed_block, content))
    text = described_text(typed)
    blocks = tuple(block for block in typed if plain_text(block) is None)
    if structured is not None:
        return ToolOutput(text or None, structured, blocks)
    return ToolOutput(text, blocks=blocks) if blocks else text


def typed_block(block: Mapping[str, Any]) -> ContentBlock:
    """Returns a content block unchanged; a text that describes it if it is invalid or of an unknown type.

    Vendors reject a whole conversation for one invalid image.
    """
    wrong = _wrong(block)
    if wrong is not None:
        return TextContent(wrong)
    try:
        converted: ContentBlock = msgspec.convert(block, ContentBlock)
    except msgspec.ValidationError:
        return TextContent(_description(block))
    return converted


def _wrong(block: Mapping[str, Any]) -> str | None:
    """Returns the description of a block with an invalid MIME type or base64; None for a valid block."""
    match block:
        case {"type": "image" | "audio" as kind, "mimeType": str(mime), "data": str(data)}:
            if not _is_mime(mime):
                return f"[{kind}, omitted: its MIME type is invalid]"
            if not _is_base64(data):
                return f"[{kind}, {mime}, omitted: its data is not base64]"
        case {"type": "resource", "resource": {"uri": uri, "blob": blob}} if not (
            isinstance(blob, str) and _is_base64(blob)
        ):
            return f"[resource: {uri}, omitted: its data is not base64]"
        case {"type": "resource", "resource": {"text": text}} if isinstance(text, str):
            return None
        case {"type": "resource", "resource": {"uri": uri, **rest}} if "blob" not in rest:
            return f"[resource: {uri}]"
    return None


def _description(block: Mapping[str, Any]) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "resource_link", "uri": uri}:
            return f"[{block.get('title') or block.get('name') or 'resource'}: {uri}]"
        case _:
            return f"[{block.get('type', 'content')}]"


def _is_mime(text: str) -> bool:
    return len(text) <= _MAX_MIME_CHARS and _MIME.fullmatch(text) is not None


def _is_base64(text: str) -> bool:
    """Whether the text is base64 as RFC 4648 defines it: padded, without line breaks."""
    return len(text) % 4 == 0 and _BASE64.fullmatch(text) is not None
