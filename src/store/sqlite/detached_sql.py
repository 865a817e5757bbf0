"""The SQL of detached calls: the requests that resume at the next start.

Each function takes a few milliseconds and runs within the caller's transaction.
"""

import sqlite3
from collections.abc import Iterable

from ..store_rows import CallStart, SessionRow, StoredDetachedCall
from . import pause_sql
from .session_sql import session_row

_SESSION = ", ".join(f"session.{name}" for name in SessionRow.__struct_fields__)


_FIELDS = (
    *("call_id", "request_key", "tool", "arguments", "client", "deadline_at", "started_at", "run"),
    *("expires_at", "drops_at", "dropped", "traceparent"),
)
_COLUMNS = (
    "detached.call_id, journal.request_key, journal.tool, detached.arguments, detached.client, detached.deadline_at, "
    "journal.started_at, run.run, detached.expires_at, detached.drops_at, detached.dropped, detached.traceparent"
)


def insert(connection: sqlite3.Connection, calls: Iterable[CallStart]) -> None:
    """Stores the requests of the detached calls among these journalled calls, until they end."""
    detached = [call for call in calls if call.detached is not None]
    connection.executemany(
        "INSERT INTO detached (number, call_id, arguments, client, deadline_at, traceparent) "
        "SELECT number, ?, ?, ?, ?, ? FROM journal WHERE session_id = ? AND request_key = ?",
        [
            (
                call.row.id,
                request.arguments,
                request.client,
                request.deadline_at,
                request.traceparent,
                call.session_id,
                call.request_key,
            )
            for call in detached
            for request in (call.detached,)
            if request is not None
        ],
    )
    for call in detached:
        if call.pause is not None:
            pause_sql.pause(connection, call.pause)


def unfinished(connection: sqlite3.Connection) -> list[StoredDetachedCall]:
    """Returns the detached calls that have not ended and are not paused, oldest first."""
    return _select(connection, "expires_at IS NULL ORDER BY number")


def find(connection: sqlite3.Connection, call_id: str) -> StoredDetachedCall | None:
    """Returns a detached call that has not ended. Its times of expiry are times of the store's clock."""
    calls = _select(connection, "detached.call_id = ?", call_id)
    return calls[0] if calls else None


def _select(connection: sqlite3.Connection, condition: str, *values: str) -> list[StoredDetachedCall]:
    rows = connection.execute(
        f"SELECT {_COLUMNS}, {_SESSION} "  # noqa: S608 - our own names
        "FROM detached JOIN journal USING (number) JOIN session ON session.id = journal.session_id "
        f"LEFT JOIN run ON run.call_id = detached.call_id WHERE {condition}",
        values,
    ).fetchall()
    calls = []
    for row in rows:
        fields = dict(zip(_FIELDS, row, strict=False))
        fields |= {"dropped": bool(fields["dropped"]), "requests": pause_sql.requests_of(connection, fields["call_id"])}
        session = session_row(row[len(_FIELDS) :])
        calls.append(StoredDetachedCall(session=session, **fields))
    return calls
