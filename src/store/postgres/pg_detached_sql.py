"""The SQL of detached calls on PostgreSQL: the requests that a node adopts when no node runs them.

Functions that write run within the caller's transaction and pipeline, and fetch nothing.
"""

from collections.abc import Sequence
from typing import Any, Final

import psycopg

from ..store_rows import CallStart, SessionRow, StoredDetachedCall
from . import pg_pause_sql
from .pg_session_sql import session_row
from .pg_values import arrays, pg_text, text_of

Connection = psycopg.Connection[tuple[Any, ...]]

_INSERT: Final = """
INSERT INTO detached (number, call_id, arguments, client, deadline_at, traceparent)
SELECT number, call_id, arguments, client, deadline_at, traceparent
FROM unnest(%s::text[], %s::text[], %s::text[], %s::bytea[], %s::bytea[], %s::float8[], %s::text[])
     AS new (session_id, request_key, call_id, arguments, client, deadline_at, traceparent)
JOIN journal USING (session_id, request_key) WHERE journal.node = %s AND journal.commit_number = %s
"""

_SESSION: Final = ", ".join(f"session.{name}" for name in SessionRow.__struct_fields__)
_FIELDS: Final = (
    *("call_id", "request_key", "tool", "arguments", "client", "deadline_at", "started_at", "run"),
    *("expires_at", "drops_at", "dropped", "traceparent"),
)
_SELECT: Final = f"""
SELECT detached.call_id, journal.request_key, journal.tool, detached.arguments, detached.client, detached.deadline_at,
       journal.started_at, run.run, detached.expires_at, detached.drops_at, detached.dropped, detached.traceparent,
       {_SESSION}
FROM detached JOIN journal USING (number) JOIN session ON session.id = journal.session_id
LEFT JOIN run ON run.call_id = detached.call_id
"""

# Rows that another node is adopting at this moment are skipped.
_ADOPT: Final = """
UPDATE journal SET node = %(node)s, commit_number = %(token)s WHERE number IN (
    SELECT journal.number FROM journal JOIN detached USING (number)
    WHERE journal.state = 'started' AND journal.node IS NULL
      AND (%(call_id)s::text IS NULL AND detached.expires_at IS NULL OR detached.call_id = %(call_id)s)
    ORDER BY journal.number LIMIT %(limit)s FOR UPDATE OF journal SKIP LOCKED)
"""


def insert(connection: Connection, calls: Sequence[CallStart], node: str, commit_number: int) -> None:
    """Stores the requests of the detached calls among these starting calls, until they end."""
    rows = [
        (
            *(pg_text(call.session_id), pg_text(call.request_key), pg_text(call.row.id), request.arguments),
            *(request.client, request.deadline_at, request.traceparent),
        )
        for call in calls
        for request in (call.detached,)
        if request is not None
    ]
    if not rows:
        return
    connection.execute(_INSERT, (*arrays(rows), node, commit_number))
    for call in calls:
        if call.detached is not None and call.pause is not None:
            pg_pause_sql.pause(connection, call.pause)


def unfinished(connection: Connection) -> list[StoredDetachedCall]:
    """Returns the detached calls that have not ended and are not paused, oldest first."""
    return _select(connection, "WHERE expires_at IS NULL ORDER BY detached.number")


def find(connection: Connection, call_id: str) -> StoredDetachedCall | None:
    """Returns a detached call that has not ended. Its times of expiry are times of the store's clock."""
    calls = _select(connection, "WHERE detached.call_id = %s", pg_text(call_id))
    return calls[0] if calls else None


def find_all(connection: Connection, ids: Sequence[str]) -> list[StoredDetachedCall]:
    """Returns those of these detached calls that have not ended, in this order."""
    found = {call.call_id: call for call in _select(connection, "WHERE detached.call_id = ANY(%s)", list(ids))}
    return [found[call_id] for call_id in map(text_of, ids) if call_id in found]


def adopt(connection: Connection, node: str, token: int, *, call_id: str | None, limit: int | None) -> None:
    """Assigns detached calls that no node runs to a node: the oldest that are not paused, or one by its id.

    ``token`` is a negative number, by which ``adopted`` finds these calls even if the answer to this statement was
    lost.
    """
    values = {"node": node, "token": token, "limit": limit}
    connection.execute(_ADOPT, values | {"call_id": None if call_id is None else pg_text(call_id)})


def adopted(connection: Connection, node: str, token: int) -> list[StoredDetachedCall]:
    """Returns the detached calls that a node has adopted with a token, oldest first."""
    return _select(
        connection,
        "WHERE journal.node = %s AND journal.commit_number = %s AND journal.state = 'started' ORDER BY journal.number",
        node,
        token,
    )


def _select(connection: Connection, condition: str, *values: Any) -> list[StoredDetachedCall]:
    calls = []
    for row in connection.execute(f"{_SELECT} {condition}", values).fetchall():
        fields = dict(zip(_FIELDS, row, strict=False))
        requests = pg_pause_sql.requests_of(connection, fields["call_id"])
        for name in ("call_id", "request_key", "tool"):
            fields[name] = text_of(fields[name])
        run = fields["run"]
        fields |= {"run": None if run is None else text_of(run), "requests": requests}
        calls.append(StoredDetachedCall(session=session_row(row[len(_FIELDS) :]), **fields))
    return calls
