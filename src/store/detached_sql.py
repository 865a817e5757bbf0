"""The SQL of detached calls: the requests that resume at the next start.

Each function takes a few milliseconds and runs within the caller's transaction.
"""

import sqlite3
from collections.abc import Iterable

from .store_rows import CallStart, SessionRow, StoredDetachedCall

_SESSION = ", ".join(f"session.{name}" for name in SessionRow.__struct_fields__)


def insert(connection: sqlite3.Connection, calls: Iterable[CallStart]) -> None:
    """Stores the requests of the detached calls among these journalled calls, until they end."""
    connection.executemany(
        "INSERT INTO detached (number, call_id, arguments, client, deadline_at) "
        "SELECT number, ?, ?, ?, ? FROM journal WHERE session_id = ? AND request_key = ?",
        [
            (call.row.id, request.arguments, request.client, request.deadline_at, call.session_id, call.request_key)
            for call in calls
            for request in (call.detached,)
            if request is not None
        ],
    )


def unfinished(connection: sqlite3.Connection) -> list[StoredDetachedCall]:
    """Returns the detached calls that have not ended, oldest first."""
    rows = connection.execute(
        "SELECT detached.call_id, journal.request_key, journal.tool, detached.arguments, detached.client, "  # noqa: S608 - our own names
        f"detached.deadline_at, journal.started_at, {_SESSION} "
        "FROM detached JOIN journal USING (number) JOIN session ON session.id = journal.session_id ORDER BY number"
    )
    return [
        StoredDetachedCall(
            call_id=call_id,
            request_key=request_key,
            tool=tool,
            arguments=arguments,
            client=client,
            deadline_at=deadline_at,
            started_at=started_at,
            session=SessionRow(**dict(zip(SessionRow.__struct_fields__, session, strict=True))),
        )
        for call_id, request_key, tool, arguments, client, deadline_at, started_at, *session in rows
    ]
