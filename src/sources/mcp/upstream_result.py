"""What a server's tool answered → what the tool here returns. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ...protocol.error_codes import CallError, ErrorCode, Executed, ToolError, ToolExecutionError, error_from_wire
from ...protocol.name_suggestions import as_sentence
from ...protocol.terminal_text import terminal_safe
from ...protocol.tool_call import ContentBlock
from ...tools import Answer

_MAX_WORDS_CHARS: Final = 2000
_MAX_DETAILS_BYTES: Final = 4096
_MAX_MIME_CHARS: Final = 255
_MIME: Final = re.compile(r"[\w.+!#$&^-]+/[\w.+!#$&^-]+(?:\s*;[ -~]*)?", re.ASCII)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_FAILURE_KEYS: Final = frozenset({"code", "message", "retryable"})


def read_answer(content: Sequence[Mapping[str, Any]], structured: Any) -> Answer | str:
    """The text of a success, its data where the server sent any, and its pictures, sounds and resources as they are; a
    resource that is text is text.
    """
    told = "\n".join(filter(None, map(_words, content)))
    blocks = tuple(block for part in content if (block := _block(part)) is not None)
    if structured is not None:
        return Answer(told or None, structured, blocks)
    return Answer(told, blocks=blocks) if blocks else told


def failure(source: str, content: Sequence[Mapping[str, Any]], structured: Any) -> CallError:
    """A tool's own failure, in its own words. One that says its code, and whether it may be sent again, as the daemon's
    own answers do, is taken at its word in that.
    """
    told = _plain("\n".join(filter(None, map(_words, content))))
    if isinstance(structured, Mapping) and structured.keys() >= _FAILURE_KEYS and structured["code"] in list(ErrorCode):
        again = structured["retryable"] is True
        after = structured.get("retry_after_ms")
        return error_from_wire(
            ToolError(
                structured["code"],
                f"{source}: {_plain(str(structured['message']))}",
                executed=_executed(structured.get("executed")),
                retryable=again,
                retry_after_ms=after if isinstance(after, int) and 0 <= after < 1e9 else None,
            )
        )
    details = None
    if structured is not None and len(msgspec.json.encode(structured)) <= _MAX_DETAILS_BYTES:
        details = {"answer": structured}
    said = told or "the tool failed, and did not say why"
    return ToolExecutionError(as_sentence(f"{source}: {said}"), details=details)


def _plain(text: str) -> str:
    """Returns terminal-safe text for an error message; its line breaks stay."""
    return terminal_safe(text[:_MAX_WORDS_CHARS], keep="\n")


def _executed(said: Any) -> Executed:
    match said:
        case "no":
            return "no"
        case "yes":
            return "yes"
        case _:
            return "maybe"


def _block(block: Mapping[str, Any]) -> ContentBlock | None:
    """A content block as it is; None where its words say all of it, or it is not as MCP has it: a client that hands a
    picture on to its model would have the whole conversation refused for one that is none."""
    match block:
        case {"type": "image" | "audio", "mimeType": str(mime), "data": str(data)} if not (
            _is_mime(mime) and _is_base64(data)
        ):
            return None
        case {"type": "resource", "resource": {"blob": blob}} if not (isinstance(blob, str) and _is_base64(blob)):
            return None
        case {"type": "image" | "audio" | "resource_link"} | {"type": "resource", "resource": {"blob": _}}:
            try:
                kept: ContentBlock = msgspec.convert(block, ContentBlock)
            except msgspec.ValidationError:
                return None
            return kept
        case _:
            return None


def _words(block: Mapping[str, Any]) -> str:
    """A content block as text: what it says, or what it is."""
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image" | "audio" as kind, "mimeType": str(mime), "data": str(data)}:
            if not _is_mime(mime):
                return f"[{kind}, left out: its type is none]"
            if not _is_base64(data):
                return f"[{kind}, {mime}, left out: its data is no base64]"
            return f"[{kind}, {mime}, {len(data) // 4 * 3 - data[-2:].count('='):,} bytes]"
        case {"type": "resource_link", "uri": uri}:
            return f"[{block.get('title') or block.get('name') or 'resource'}: {uri}]"
        case {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": "resource", "resource": {"uri": uri, "blob": str(blob)}} if not _is_base64(blob):
            return f"[resource: {uri}, left out: its data is no base64]"
        case {"type": "resource", "resource": {"uri": uri}}:
            return f"[resource: {uri}]"
        case _:
            return f"[{block.get('type', 'content')}]"


def _is_mime(text: str) -> bool:
    return len(text) <= _MAX_MIME_CHARS and _MIME.fullmatch(text) is not None


def _is_base64(text: str) -> bool:
    """As RFC 4648 has it, and JSON Schema's ``byte``: in no lines, and filled up."""
    return len(text) % 4 == 0 and _BASE64.fullmatch(text) is not None
