"""Converts the failure of a server's tool into this daemon's error. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ...protocol.content_text import described_text, head_and_tail
from ...protocol.error_codes import CallError, ErrorCode, Executed, ToolError, ToolExecutionError, error_from_wire
from ...protocol.mcp.mcp_result import ERROR_KEY
from ...protocol.name_suggestions import as_sentence
from ...protocol.terminal_text import terminal_safe
from ...tools import ToolOutput
from ..content_blocks import typed_block

MAX_MESSAGE_CHARS: Final = 16_384
"""The maximum length of a failed tool's message in the error: its first and last lines. The content has the whole
message.
"""
_MAX_DETAILS_BYTES: Final = 4096
_FAILURE_KEYS: Final = frozenset({"code", "message", "retryable"})


def failure(
    source: str, content: Sequence[Mapping[str, Any]], structured: Any, meta: Mapping[str, Any] | None = None
) -> CallError:
    """Returns the error of a failed tool, with the tool's message; its ``output`` is the tool's whole answer.

    Error codes and retry hints in the daemon's own format are passed on.
    """
    blocks = tuple(map(typed_block, content))
    text = _plain(described_text(blocks))
    error = _own_error(source, (meta or {}).get(ERROR_KEY)) or _own_error(source, structured)
    if error is None:
        details = None
        if structured is not None and len(msgspec.json.encode(structured)) <= _MAX_DETAILS_BYTES:
            details = {"answer": structured}
        message = text or "the tool failed without a message"
        error = ToolExecutionError(as_sentence(f"{source}: {message}"), details=details)
    data = msgspec.UNSET if structured is None else structured
    error.output = ToolOutput(data=data, content=blocks, meta=None if meta is None else dict(meta))
    return error


def _own_error(source: str, record: Any) -> CallError | None:
    """Returns the error with which another toold answered; None if the record is not such an error."""
    if not (isinstance(record, Mapping) and record.keys() >= _FAILURE_KEYS and record["code"] in list(ErrorCode)):
        return None
    retry_after_ms = record.get("retry_after_ms")
    return error_from_wire(
        ToolError(
            record["code"],
            f"{source}: {_plain(str(record['message']))}",
            executed=_executed(record.get("executed")),
            retryable=record["retryable"] is True,
            retry_after_ms=retry_after_ms if isinstance(retry_after_ms, int) and 0 <= retry_after_ms < 1e9 else None,
        )
    )


def _plain(text: str) -> str:
    """Returns terminal-safe text for an error message. A long text is cut in the middle; line breaks stay."""
    return terminal_safe(head_and_tail(text, MAX_MESSAGE_CHARS), keep="\n")


def _executed(value: Any) -> Executed:
    match value:
        case "no":
            return "no"
        case "yes":
            return "yes"
        case _:
            return "maybe"
