"""Content blocks as text, for readers that accept only text: models of agents, and old MCP revisions. Pure."""

from collections.abc import Iterable
from typing import Final

from .tool_call import AudioContent, ContentBlock, EmbeddedResource, ImageContent, ResourceLink

_MARK_CHARS: Final = 64
"""More characters than the mark that ``head_and_tail`` inserts."""


def block_text(block: ContentBlock) -> str:
    """Returns a content block as text: its text, or a description."""
    match block:
        case ImageContent():
            return f"[image, {block.mime_type}, {_size(block.data):,} bytes]"
        case AudioContent():
            return f"[audio, {block.mime_type}, {_size(block.data):,} bytes]"
        case ResourceLink():
            return f"[{block.title or block.name or 'resource'}: {block.uri}]"
        case EmbeddedResource():
            text = block.resource.get("text")
            return text if isinstance(text, str) else f"[resource: {block.resource.get('uri')}]"
        case _:
            return block.text


def described_text(blocks: Iterable[ContentBlock]) -> str:
    """Returns all blocks as text, separated by line breaks, without empty ones."""
    return "\n".join(filter(None, map(block_text, blocks)))


def head_and_tail(text: str, max_chars: int) -> str:
    """Returns the text. If it exceeds ``max_chars``, a mark with the number of cut characters replaces its middle.

    The last lines of a failed program matter as much as the first.
    """
    if len(text) <= max_chars:
        return text
    kept = max(0, max_chars - _MARK_CHARS)
    head = (kept + 1) // 2
    tail = text[len(text) - (kept - head) :] if kept > head else ""
    return f"{text[:head]}\n[… {len(text) - kept:,} characters cut …]\n{tail}"


def _size(base64: str) -> int:
    """Returns the number of bytes that padded base64 encodes."""
    return len(base64) // 4 * 3 - base64[-2:].count("=")
