"""Converts the failure of a server's tool into this daemon's error. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ...protocol.error_codes import CallError, ErrorCode, Executed, ToolError, ToolExecutionError, error_from_wire
from ...protocol.name_suggestions import as_sentence
from ...protocol.terminal_text import terminal_safe
from ..content_blocks import block_text

_MAX_MESSAGE_CHARS: Final = 2000
_MAX_DETAILS_BYTES: Final = 4096
_FAILURE_KEYS: Final = frozenset({"code", "message", "retryable"})


def failure(source: str, content: Sequence[Mapping[str, Any]], structured: Any) -> CallError:
    """Returns the error of a failed tool, with the tool's message.

    Error codes and retry hints in the daemon's own format are passed on.
    """
    text = _plain("\n".join(filter(None, map(block_text, content))))
    if isinstance(structured, Mapping) and structured.keys() >= _FAILURE_KEYS and structured["code"] in list(ErrorCode):
        retryable = structured["retryable"] is True
        retry_after_ms = structured.get("retry_after_ms")
        return error_from_wire(
            ToolError(
                structured["code"],
                f"{source}: {_plain(str(structured['message']))}",
                executed=_executed(structured.get("executed")),
                retryable=retryable,
                retry_after_ms=retry_after_ms
                if isinstance(retry_after_ms, int) and 0 <= retry_after_ms < 1e9
                else None,
            )
        )
    details = None
    if structured is not None and len(msgspec.json.encode(structured)) <= _MAX_DETAILS_BYTES:
        details = {"answer": structured}
    message = text or "the tool failed without a message"
    return ToolExecutionError(as_sentence(f"{source}: {message}"), details=details)


def _plain(text: str) -> str:
    """Returns terminal-safe text for an error message; its line breaks stay."""
    return terminal_safe(text[:_MAX_MESSAGE_CHARS], keep="\n")


def _executed(value: Any) -> Executed:
    match value:
        case "no":
            return "no"
        case "yes":
            return "yes"
        case _:
            return "maybe"
