"""The SQL of runs: under which run the journal stores the child calls of an orchestration call.

Each function takes a few milliseconds and runs within the caller's transaction.
"""

import sqlite3
from collections.abc import Iterable

from .audit_sql import SLICE
from .store_rows import CallStart


def insert(connection: sqlite3.Connection, calls: Iterable[CallStart]) -> None:
    """Stores the runs of starting calls that can be resumed: orchestration calls that are not child calls, and child
    calls that create a detached call.
    """
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
    # The call that created a detached call has the run of the detached one, so that either id finds it.
    connection.executemany(
        "INSERT INTO run (call_id, principal, tool, run, started_at) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (call_id) DO UPDATE SET run = excluded.run",
        [
            (call.detached.creator, call.row.principal, call.row.tool, call.row.id, call.row.started_at)
            for call in calls
            if call.detached is not None and call.detached.creator is not None
        ],
    )


def find_run(connection: sqlite3.Connection, call_id: str, principal: str, tool: str) -> str | None:
    """Returns the run of a principal's call of this tool; None if it is unknown.

    The run of a call that started a detached call is that of the detached call, which may continue an earlier run.
    """
    row = connection.execute(
        "SELECT coalesce(detached.run, run.run) FROM run LEFT JOIN run AS detached ON detached.call_id = run.run "
        "WHERE run.call_id = ? AND run.principal = ? AND run.tool = ?",
        (call_id, principal, tool),
    ).fetchone()
    return None if row is None else str(row[0])


def resume(connection: sqlite3.Connection, call_id: str, run: str) -> None:
    """Stores the children of this call under an earlier run from now on."""
    connection.execute("UPDATE run SET run = ? WHERE call_id = ?", (run, call_id))


def delete_expired(connection: sqlite3.Connection, before: float) -> int:
    """Deletes a slice of the runs that began before a Unix time and have no stored calls; returns how many."""
    return connection.execute(
        "DELETE FROM run WHERE call_id IN (SELECT call_id FROM run WHERE started_at < ? "
        "AND NOT EXISTS (SELECT 1 FROM journal WHERE session_id = run.run) LIMIT ?)",
        (before, SLICE),
    ).rowcount
