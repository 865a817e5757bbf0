"""Settles a call that had started and not ended when its process ended. Pure.

If the call had created a detached call, the answer is the id of that call, so that a repeat finds it. The outcome of
any other call is unknown.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from ..protocol.detached_answer import detached_answer, paused_answer
from ..protocol.tool_call import Metadata, TextContent, Timings, ToolResult, encode_result
from .commit_entries import InterruptedCall
from .store_rows import CallRow, StoredDetachedCall


def template_of(json_: bytes | str | None) -> CallRow | None:
    """Returns the stored audit row of a call; None if it cannot be decoded."""
    try:
        return msgspec.json.decode(json_ or b"", type=CallRow)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def interrupted_call(
    session_id: str, request_key: str, at: float, row: CallRow | None, answer: dict[str, Any] | None
) -> InterruptedCall:
    """Returns the end of an interrupted call, at a time of the store's clock. ``answer``: from ``answer_of_creator``,
    if the call had created a detached call.
    """
    if row is None or answer is None:
        return InterruptedCall(session_id=session_id, request_key=request_key, at=at, row=row)
    metadata = Metadata(row.latency_ms, Timings(queue_ms=row.queue_ms))
    result = encode_result(ToolResult(metadata, (TextContent(msgspec.json.encode(answer).decode()),), answer))
    ended = replace(row, outcome="ok", message=None, executed="yes", result_bytes=len(result))
    return InterruptedCall(session_id=session_id, request_key=request_key, at=at, row=ended, result=result)


def answer_of_creator(
    created: str, stored: StoredDetachedCall | None, unix_time: Callable[[float], float]
) -> dict[str, Any]:
    """Returns the answer of a call that created a detached call, or continues as one because it paused. ``unix_time``
    converts times of the store's clock.
    """
    if stored is not None and stored.expires_at is not None and stored.run not in {None, created}:
        requests = [each.request for each in stored.requests if each.decision is None]
        return paused_answer(created, requests, unix_time(stored.expires_at))
    return detached_answer(created)
