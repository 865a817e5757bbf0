"""The SQL of calls that had started and not ended when the previous process ended.

A call that had created a detached call is answered with its id, so that a repeat finds what it created.
Each function takes a few milliseconds and runs within the caller's transaction.
"""

import sqlite3
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from ...protocol.detached_answer import detached_answer, paused_answer
from ...protocol.tool_call import Metadata, TextContent, Timings, ToolResult, encode_result
from ..commit_entries import InterruptedCall
from ..store_rows import CallRow
from . import detached_sql


def interrupted_calls(
    connection: sqlite3.Connection, at: float, *, unix_time: Callable[[float], float] = float
) -> list[InterruptedCall]:
    """Returns the calls that have started and not ended, except detached ones, which resume. For the daemon's start.

    ``unix_time`` converts times of the store's clock; by default, they are Unix times.
    """
    rows = connection.execute(
        # As bytes, so that a row with invalid text fails alone.
        "SELECT session_id, request_key, child, CAST(audit_row AS BLOB) FROM journal LEFT JOIN template USING (number) "
        "WHERE state = 'started' AND number NOT IN (SELECT number FROM detached) ORDER BY number"
    ).fetchall()
    calls = []
    for session_id, key, child, template in rows:
        row, result = _template(template), None
        # A child runs again with its parent, and finds what it created by its run.
        answer = None if row is None or child else _answer(connection, row.id, unix_time)
        if row is not None and answer is not None:
            result = _encoded(row, answer)
            row = replace(row, outcome="ok", message=None, executed="yes", result_bytes=len(result))
        calls.append(InterruptedCall(session_id=session_id, request_key=key, at=at, row=row, result=result))
    return calls


def _answer(connection: sqlite3.Connection, call_id: str, unix_time: Callable[[float], float]) -> dict[str, Any] | None:
    """The answer of a call that created a detached call, or continues as one because it paused; None for any other."""
    found = connection.execute(
        "SELECT created FROM run WHERE call_id = ? AND created IS NOT NULL", (call_id,)
    ).fetchone()
    if found is None:
        return None
    (created,) = found
    stored = detached_sql.find(connection, created)
    if stored is not None and stored.expires_at is not None and stored.run not in {None, created}:
        requests = [each.request for each in stored.requests if each.decision is None]
        return paused_answer(created, requests, unix_time(stored.expires_at))
    return detached_answer(created)


def _encoded(row: CallRow, answer: dict[str, Any]) -> bytes:
    metadata = Metadata(row.latency_ms, Timings(queue_ms=row.queue_ms))
    return encode_result(ToolResult(metadata, (TextContent(msgspec.json.encode(answer).decode()),), answer))


def _template(json_: bytes | None) -> CallRow | None:
    try:
        return msgspec.json.decode(json_ or b"", type=CallRow)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
