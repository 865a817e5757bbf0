"""The SQL of calls that had started and not ended when the previous process ended.

Each function takes a few milliseconds and runs within the caller's transaction.
"""

import sqlite3
from collections.abc import Callable
from typing import Any

from ..commit_entries import InterruptedCall
from ..interrupted_calls import answer_of_creator, interrupted_call, template_of
from . import detached_sql


def interrupted_calls(
    connection: sqlite3.Connection, at: float, *, unix_time: Callable[[float], float] = float
) -> list[InterruptedCall]:
    """Returns the calls that have started and not ended, except detached ones, which resume. For the daemon's start.

    ``unix_time`` converts times of the store's clock; by default, they are Unix times.
    """
    rows = connection.execute(
        # As bytes, so that invalid text in one row does not fail the others.
        "SELECT session_id, request_key, child, CAST(audit_row AS BLOB) FROM journal LEFT JOIN template USING (number) "
        "WHERE state = 'started' AND number NOT IN (SELECT number FROM detached) ORDER BY number"
    ).fetchall()
    calls = []
    for session_id, key, child, template in rows:
        row = template_of(template)
        # A child runs again with its parent, and finds the detached call that it created by its run.
        answer = None if row is None or child else _answer(connection, row.id, unix_time)
        calls.append(interrupted_call(session_id, key, at, row, answer))
    return calls


def _answer(connection: sqlite3.Connection, call_id: str, unix_time: Callable[[float], float]) -> dict[str, Any] | None:
    """The answer of a call that created a detached call; None for any other."""
    found = connection.execute(
        "SELECT created FROM run WHERE call_id = ? AND created IS NOT NULL", (call_id,)
    ).fetchone()
    if found is None:
        return None
    (created,) = found
    return answer_of_creator(created, detached_sql.find(connection, created), unix_time)
