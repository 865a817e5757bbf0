"""The SQL of detached calls: those that go on at the next start, with what they were asked for.

Each function is one short piece of work within a transaction of the caller's.
"""

import sqlite3
from collections.abc import Iterable

from .store_rows import CallStart, SessionRow, StoredDetachedCall

_SESSION = ", ".join(f"session.{name}" for name in SessionRow.__struct_fields__)


def begin(connection: sqlite3.Connection, calls: Iterable[CallStart]) -> None:
    """Of these calls, which have their rows in the journal, keep what the detached ones were asked for. It goes when
    they end.
    """
    connection.executemany(
        "INSERT INTO detached (number, call_id, arguments, client, deadline_at) "
        "SELECT number, ?, ?, ?, ? FROM journal WHERE session_id = ? AND request_key = ?",
        [
            (call.row.id, order.arguments, order.client, order.deadline_at, call.session_id, call.request_key)
            for call in calls
            for order in (call.detached,)
            if order is not None
        ],
    )


def begun(connection: sqlite3.Connection) -> list[StoredDetachedCall]:
    """Those that have not ended, the oldest first."""
    found = connection.execute(
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
        for call_id, request_key, tool, arguments, client, deadline_at, started_at, *session in found
    ]
