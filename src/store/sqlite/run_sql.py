"""The SQL of runs. The journal stores the child calls of an orchestration call under its run.

Each function takes a few milliseconds and runs within the caller's transaction.
"""

import sqlite3
from collections.abc import Iterable
from typing import Final

from ..store_rows import CallStart
from .audit_sql import SLICE


def insert(connection: sqlite3.Connection, calls: Iterable[CallStart]) -> None:
    """Stores the runs of starting calls that can be resumed: orchestration calls that are not child calls, and child
    calls that create a detached call.
    """
    connection.executemany(
        "INSERT INTO run (call_id, principal, tool, run, started_at) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (call_id) DO NOTHING",
        [
            (row.id, row.principal, row.tool, run or row.id, row.started_at)
            for call in calls
            if call.orchestration and not call.child
            for row, run in ((call.row, None if call.detached is None else call.detached.run),)
        ],
    )
    # The call that created a detached call has the detached call's run, so that either id finds it.
    connection.executemany(
        "INSERT INTO run (call_id, principal, tool, run, started_at, created) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (call_id) DO UPDATE SET run = excluded.run, created = excluded.created",
        [
            (
                *(call.detached.creator, call.row.principal, call.row.tool),
                *(call.detached.run or call.row.id, call.row.started_at, call.row.id),
            )
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
    """Stores the children of this call under an earlier run from now on. The run is unfinished again."""
    connection.execute("UPDATE run SET run = ? WHERE call_id = ?", (run, call_id))
    _mark(connection, run, unfinished=True)


def finish(connection: sqlite3.Connection, runs: Iterable[str]) -> None:
    """Marks these runs as finished. From now on, the results of their child calls expire like all others."""
    for run in runs:
        _mark(connection, run, unfinished=False)


def _mark(connection: sqlite3.Connection, run: str, *, unfinished: bool) -> None:
    # "0" is the character after the slash that separates the names in a nested run.
    connection.execute(
        "UPDATE journal SET unfinished = ?1 WHERE child AND unfinished != ?1 "
        "AND (session_id = ?2 OR (session_id > ?2 || '/' AND session_id < ?2 || '0'))",
        (unfinished, run),
    )


_FINISHED: Final = (
    "unfinished AND substr(session_id, 1, instr(session_id || '/', '/') - 1) NOT IN "
    "(SELECT coalesce(run.run, detached.call_id) FROM detached LEFT JOIN run USING (call_id))"
)


def has_finished(connection: sqlite3.Connection) -> bool:
    """Whether child calls of runs that ended with the previous process are still marked as unfinished."""
    (exists,) = connection.execute(f"SELECT EXISTS (SELECT 1 FROM journal WHERE {_FINISHED})").fetchone()  # noqa: S608 - our own names
    return bool(exists)


def finish_all(connection: sqlite3.Connection) -> None:
    """Marks all runs as finished, except those of detached calls. For the daemon's start."""
    connection.execute(f"UPDATE journal SET unfinished = 0 WHERE {_FINISHED}")  # noqa: S608 - our own names


def drop(connection: sqlite3.Connection, numbers: str) -> None:
    """Marks the detached calls whose runs contain these journal entries (numbers as JSON), whose results are
    deleted."""
    connection.execute(
        "UPDATE detached SET dropped = 1 WHERE number IN (SELECT detached.number FROM detached "
        "LEFT JOIN run USING (call_id) WHERE coalesce(run.run, detached.call_id) IN "
        "(SELECT substr(session_id, 1, instr(session_id || '/', '/') - 1) FROM journal "
        "WHERE number IN (SELECT value FROM json_each(?))))",
        (numbers,),
    )


def delete_expired(connection: sqlite3.Connection, before: float) -> int:
    """Deletes a slice of the runs that began before a Unix time and have no stored calls; returns how many."""
    return connection.execute(
        "DELETE FROM run WHERE call_id IN (SELECT call_id FROM run WHERE started_at < ? "
        "AND NOT EXISTS (SELECT 1 FROM journal WHERE session_id = run.run) "
        "AND call_id NOT IN (SELECT call_id FROM detached) LIMIT ?)",
        (before, SLICE),
    ).rowcount
