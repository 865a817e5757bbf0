"""The SQL of resumable sessions on PostgreSQL, of their calls in the journal, and of their holders.

Functions that write run within the caller's transaction and pipeline, and fetch nothing.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

import psycopg

from ...protocol.session_calls import REMEMBERED_IDS
from ..store_rows import SessionRow, StoredCall, StoredCallState, StoredSession
from .pg_values import pg_text, text_of

Connection = psycopg.Connection[tuple[Any, ...]]

_SESSION: Final = "id, key_hash, principal, label, toolset, opened_at, former"


def open_session(connection: Connection, row: SessionRow, holder: str) -> None:
    """Stores a session that a node holds; for an existing session, only updates ``former``."""
    connection.execute(
        f"INSERT INTO session AS stored ({_SESSION}, seen_at, holder) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) "
        "ON CONFLICT (id) DO UPDATE SET former = stored.former OR excluded.former",
        (
            *(row.id, row.key_hash, pg_text(row.principal), pg_text(row.label), pg_text(row.toolset), row.opened_at),
            *(row.former, row.opened_at, holder),
        ),
    )


def session_row(columns: Sequence[Any]) -> SessionRow:
    """The session from a row's columns, which are in the order of the fields."""
    fields = dict(zip(SessionRow.__struct_fields__, columns, strict=True))
    texts = {name: text_of(fields[name]) for name in ("principal", "label", "toolset")}
    return SessionRow(**{**fields, **texts, "key_hash": bytes(fields["key_hash"])})


def mark_seen(connection: Connection, session_ids: Sequence[str], at: float) -> None:
    """Stores that clients held these sessions at a time of the store's clock."""
    connection.execute(
        "UPDATE session SET seen_at = greatest(seen_at, %s) WHERE id IN (SELECT id FROM session WHERE id = ANY(%s) "
        "ORDER BY id FOR UPDATE)",
        (at, [pg_text(session_id) for session_id in session_ids]),
    )


def close_session(connection: Connection, session_id: str) -> None:
    """Deletes a session and its calls; running calls are deleted when they end."""
    values = (pg_text(session_id),)
    connection.execute("DELETE FROM session WHERE id = %s", values)
    connection.execute("DELETE FROM journal WHERE session_id = %s AND state <> 'started'", values)
    connection.execute("UPDATE journal SET session_closed = true WHERE session_id = %s", values)


# --- who holds a session ---------------------------------------------------------------------------------------------

# A holder that is no longer in the table ended long ago.
_CLAIM: Final = f"""
UPDATE session SET holder = %(node)s, seen_at = greatest(seen_at, extract(epoch FROM clock_timestamp()))
WHERE key_hash = %(key_hash)s AND (holder IS NULL OR holder = %(node)s OR NOT EXISTS
    (SELECT 1 FROM node WHERE epoch = session.holder AND state <> 'dead'))
RETURNING {_SESSION}
"""


def claim(connection: Connection, key_hash: bytes, node: str) -> SessionRow | None:
    """Makes a node the holder of a session and returns the session; None if a live node holds it or it does not
    exist."""
    row = connection.execute(_CLAIM, {"key_hash": key_hash, "node": node}).fetchone()
    return None if row is None else session_row(row)


def holder_of(connection: Connection, key_hash: bytes) -> str | None:
    """Returns the epoch of the node that holds a session; empty if no node does; None if there is no such session."""
    row = connection.execute("SELECT coalesce(holder, '') FROM session WHERE key_hash = %s", (key_hash,)).fetchone()
    return None if row is None else str(row[0])


def release(connection: Connection, session_ids: Sequence[str], node: str) -> None:
    """Releases these sessions, as far as this node holds them."""
    connection.execute(
        "UPDATE session SET holder = NULL WHERE id = ANY(%s) AND holder = %s",
        ([pg_text(session_id) for session_id in session_ids], node),
    )


def release_of_node(connection: Connection, node: str) -> None:
    """Releases all sessions of a node."""
    connection.execute("UPDATE session SET holder = NULL WHERE holder = %s", (node,))


# --- reads -----------------------------------------------------------------------------------------------------------

_COLUMNS: Final = (
    *("request_key", "echo_id", "tool", "arguments_hash", "local", "unstarted", "state", "result", "ended_at"),
)
_NAMES: Final = ", ".join(_COLUMNS)
_ENDED: Final = f"""
SELECT {_NAMES} FROM journal WHERE number IN (
    SELECT number FROM journal WHERE session_id = %s AND state <> 'started'
    ORDER BY ended_at DESC, number DESC LIMIT %s)
ORDER BY number
"""


def load_session(connection: Connection, key_hash: bytes, *, results_since: float) -> StoredSession | None:
    """Returns a session by its key, with as many of its last ended calls as a session has in memory.

    Results from before ``results_since``, a time of the store's clock, count as expired.
    """
    columns = connection.execute(
        f"SELECT {_SESSION} FROM session WHERE key_hash = %s",
        (key_hash,),
    ).fetchone()
    return None if columns is None else with_calls(connection, session_row(columns), results_since=results_since)


def with_calls(connection: Connection, row: SessionRow, *, results_since: float) -> StoredSession:
    """Returns a session with its last ended calls."""
    ended = connection.execute(_ENDED, (pg_text(row.id), REMEMBERED_IDS)).fetchall()
    calls = [_stored_call(row.id, fields, results_since) for fields in ended]
    return StoredSession(
        row=row, calls=sorted(filter(None, calls), key=lambda call: call.at), more=len(calls) == REMEMBERED_IDS
    )


def ended_call(connection: Connection, session_id: str, request_key: str, *, results_since: float) -> StoredCall | None:
    """Returns a session's ended journalled call. A result from before ``results_since`` counts as expired."""
    row = connection.execute(
        f"SELECT {_NAMES} FROM journal WHERE session_id = %s AND request_key = %s AND state <> 'started' "
        "AND NOT local AND NOT child",
        (pg_text(session_id), pg_text(request_key)),
    ).fetchone()
    if row is None:
        return None
    call = _stored_call(session_id, row, results_since)
    return None if call is None else call.expired_before(results_since)


def call_states(
    connection: Connection, session_id: str, request_keys: Sequence[str], *, results_since: float
) -> dict[str, StoredCallState]:
    """Returns the states of these journalled calls of a session; calls that are not stored are absent. A call that
    ended before ``results_since``, or has not ended, counts as expired: callers ask only about calls that do not run.
    """
    rows = connection.execute(
        "SELECT request_key, CASE WHEN state <> 'started' AND ended_at >= %s THEN state ELSE 'expired' END "
        "FROM journal WHERE session_id = %s AND request_key = ANY(%s) AND NOT local AND NOT child",
        (results_since, pg_text(session_id), [pg_text(key) for key in request_keys]),
    )
    return {text_of(key): state for key, state in rows}


def child_call(
    connection: Connection, run: str, name: str, principal: str, *, results_since: float
) -> StoredCall | None:
    """Returns a child call as ``load_session`` does. A call that has started and not ended counts as interrupted.
    Results of runs that have not ended do not expire.
    """
    row = connection.execute(
        f"SELECT {_NAMES}, unfinished FROM journal "
        "WHERE session_id = %s AND request_key = %s AND principal = %s AND child",
        (pg_text(run), pg_text(name), pg_text(principal)),
    ).fetchone()
    if row is None:
        return None
    *columns, unfinished = row
    fields = dict(zip(_COLUMNS, columns, strict=True))
    if fields["state"] == "started":
        fields |= {"state": "interrupted", "ended_at": 0.0}
    return _stored_call(run, fields.values(), -math.inf if unfinished else results_since)


def children_of_run(connection: Connection, run: str, principal: str) -> dict[str, tuple[str, bytes]]:
    """Returns the children of a run by their names, each with its tool and the hash of its arguments."""
    rows = connection.execute(
        "SELECT request_key, tool, arguments_hash FROM journal WHERE session_id = %s AND principal = %s AND child",
        (pg_text(run), pg_text(principal)),
    )
    return {text_of(name): (text_of(tool), bytes(arguments_hash)) for name, tool, arguments_hash in rows}


def _stored_call(session_id: str, columns: Iterable[Any], results_since: float) -> StoredCall | None:
    fields = dict(zip(_COLUMNS, columns, strict=True))
    at = fields.pop("ended_at")
    if fields["state"] == "done" and at < results_since:
        if fields["local"]:
            return None
        fields |= {"state": "expired", "result": None}
    fields |= {"request_key": text_of(fields["request_key"]), "tool": text_of(fields["tool"])}
    fields["started"] = not fields.pop("unstarted")
    return StoredCall(session_id=session_id, at=at, **fields)
