"""The SQL of runs: calls that make calls, and under what theirs are in the journal. Each function is one short piece of
work within a transaction of the caller's.
"""

import sqlite3
from collections.abc import Iterable

from .audit_sql import SLICE
from .store_rows import CallStart


def begin(connection: sqlite3.Connection, calls: Iterable[CallStart]) -> None:
    """These calls start, and make calls of their own; a child's run is not taken up by itself."""
    connection.executemany(
        "INSERT INTO run (call_id, principal, tool, run, started_at) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (call_id) DO NOTHING",
        [
            (row.id, row.principal, row.tool, row.id, row.started_at)
            for call in calls
            if call.orchestration and not call.child
            for row in (call.row,)
        ],
    )


def find(connection: sqlite3.Connection, call_id: str, principal: str, tool: str) -> str | None:
    """What the children of a principal's call of this tool are known under; None where there is no such call."""
    found = connection.execute(
        "SELECT run FROM run WHERE call_id = ? AND principal = ? AND tool = ?", (call_id, principal, tool)
    ).fetchone()
    return None if found is None else str(found[0])


def take_up(connection: sqlite3.Connection, call_id: str, run: str) -> None:
    """From now on the children of this call are known under an earlier run."""
    connection.execute("UPDATE run SET run = ? WHERE call_id = ?", (run, call_id))


def forget_old(connection: sqlite3.Connection, before: float) -> int:
    """Remove runs that began before a Unix time and of which no call is remembered: a slice of them.

    Returns how many were removed.
    """
    return connection.execute(
        "DELETE FROM run WHERE call_id IN (SELECT call_id FROM run WHERE started_at < ? "
        "AND NOT EXISTS (SELECT 1 FROM journal WHERE session_id = run.run) LIMIT ?)",
        (before, SLICE),
    ).rowcount
