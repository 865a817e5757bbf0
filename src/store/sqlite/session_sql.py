"""The SQL of resumable sessions, and of their calls in the journal.

Each function takes a few milliseconds and runs within the caller's transaction.
"""

import json
import math
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ...protocol.session_calls import REMEMBERED_IDS
from ..store_rows import SessionRow, StoredCall, StoredCallState, StoredSession


def open_session(connection: sqlite3.Connection, row: SessionRow) -> None:
    """Stores a session; for an existing session, only updates ``former``."""
    connection.execute(
        "INSERT INTO session (id, key_hash, principal, label, toolset, opened_at, seen_at, former) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET former = max(former, excluded.former)",
        (row.id, row.key_hash, row.principal, row.label, row.toolset, row.opened_at, row.opened_at, row.former),
    )


def session_row(columns: Sequence[Any]) -> SessionRow:
    """The session from a row's columns, which are in the order of its fields."""
    fields = dict(zip(SessionRow.__struct_fields__, columns, strict=True))
    return SessionRow(**{**fields, "former": bool(fields["former"])})


def mark_seen(connection: sqlite3.Connection, session_ids: Sequence[str], at: float) -> None:
    """Stores that clients held these sessions at a Unix time."""
    connection.execute(
        "UPDATE session SET seen_at = max(seen_at, ?) WHERE id IN (SELECT value FROM json_each(?))",
        (at, json.dumps(session_ids)),
    )


def close_session(connection: sqlite3.Connection, session_id: str) -> None:
    """Deletes a session and its calls; running calls are deleted when they end."""
    connection.execute("DELETE FROM session WHERE id = ?", (session_id,))
    connection.execute("DELETE FROM journal WHERE session_id = ? AND state != 'started'", (session_id,))
    connection.execute("UPDATE journal SET session_closed = 1 WHERE session_id = ?", (session_id,))


def has_orphaned_calls(connection: sqlite3.Connection) -> bool:
    """Whether there are calls, other than child calls, whose session is not stored and so cannot be resumed."""
    (exists,) = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM journal WHERE NOT child AND session_id NOT IN (SELECT id FROM session))"
    ).fetchone()
    return bool(exists)


def delete_orphaned_calls(connection: sqlite3.Connection) -> None:
    """Deletes the orphaned calls that have ended. For the daemon's start, when no client holds such a session."""
    connection.execute(
        "DELETE FROM journal WHERE state != 'started' AND NOT child AND session_id NOT IN (SELECT id FROM session)"
    )


_COLUMNS: Final = (
    *("request_key", "echo_id", "tool", "arguments_hash", "local", "unstarted", "state", "result", "ended_at"),
)


def load_session(connection: sqlite3.Connection, key_hash: bytes, *, results_since: float) -> StoredSession | None:
    """Returns a session by its key, with as many of its last ended calls as a session has in memory.

    Results from before ``results_since``, a Unix time, count as expired.
    """
    columns = connection.execute(
        "SELECT id, key_hash, principal, label, toolset, opened_at, former FROM session WHERE key_hash = ?", (key_hash,)
    ).fetchone()
    if columns is None:
        return None
    row = session_row(columns)
    # The subquery omits the results, because SQLite would carry them through its sorter.
    ended = connection.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM journal LEFT JOIN result USING (number) WHERE number IN ("  # noqa: S608 - our own names
        "SELECT number FROM journal WHERE session_id = ? AND state != 'started' "
        "ORDER BY ended_at DESC, number DESC LIMIT ?) ORDER BY number",
        (row.id, REMEMBERED_IDS),
    )
    calls = [_stored_call(row.id, fields, results_since) for fields in ended]
    return StoredSession(
        row=row, calls=sorted(filter(None, calls), key=lambda call: call.at), more=len(calls) == REMEMBERED_IDS
    )


def ended_call(
    connection: sqlite3.Connection, session_id: str, request_key: str, *, results_since: float
) -> StoredCall | None:
    """Returns a session's ended journalled call. A result from before ``results_since`` counts as expired."""
    row = connection.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM journal LEFT JOIN result USING (number) "  # noqa: S608 - our own names
        "WHERE session_id = ? AND request_key = ? AND state != 'started' AND NOT local AND NOT child",
        (session_id, request_key),
    ).fetchone()
    if row is None:
        return None
    call = _stored_call(session_id, row, results_since)
    return None if call is None else call.expired_before(results_since)


def call_states(
    connection: sqlite3.Connection, session_id: str, request_keys: Sequence[str], *, results_since: float
) -> dict[str, StoredCallState]:
    """Returns the states of these journalled calls of a session; calls that are not stored are absent. A call that
    ended before ``results_since``, or has not ended, counts as expired: callers ask only about calls that do not run.
    """
    rows = connection.execute(
        "SELECT request_key, CASE WHEN state != 'started' AND ended_at >= ? THEN state ELSE 'expired' END "
        "FROM json_each(?) CROSS JOIN journal ON session_id = ? AND request_key = json_each.value "
        "WHERE NOT local AND NOT child",
        (results_since, json.dumps(request_keys), session_id),
    )
    return dict(rows.fetchall())


def child_call(
    connection: sqlite3.Connection, run: str, name: str, principal: str, *, results_since: float
) -> StoredCall | None:
    """Returns a child call as ``load_session`` does. A call that has started and not ended counts as interrupted.
    Results of unfinished runs do not expire.
    """
    row = connection.execute(
        f"SELECT {', '.join(_COLUMNS)}, unfinished FROM journal LEFT JOIN result USING (number) "  # noqa: S608 - our own names
        "WHERE session_id = ? AND request_key = ? AND principal = ? AND child",
        (run, name, principal),
    ).fetchone()
    if row is None:
        return None
    *columns, unfinished = row
    fields = dict(zip(_COLUMNS, columns, strict=True))
    if fields["state"] == "started":
        fields |= {"state": "interrupted", "ended_at": 0.0}
    return _stored_call(run, fields.values(), -math.inf if unfinished else results_since)


def children_of_run(connection: sqlite3.Connection, run: str, principal: str) -> dict[str, tuple[str, bytes]]:
    """Returns the children of a run by their names, each with its tool and the hash of its arguments."""
    rows = connection.execute(
        "SELECT request_key, tool, arguments_hash FROM journal WHERE session_id = ? AND principal = ? AND child",
        (run, principal),
    )
    return {name: (tool, arguments_hash) for name, tool, arguments_hash in rows}


def _stored_call(session_id: str, columns: Iterable[Any], results_since: float) -> StoredCall | None:
    fields = dict(zip(_COLUMNS, columns, strict=True))
    at = fields.pop("ended_at")
    if fields["state"] == "done" and at < results_since:
        if fields["local"]:
            return None
        fields |= {"state": "expired", "result": None}
    fields |= {"local": bool(fields["local"]), "echo_id": bool(fields["echo_id"])}
    fields["started"] = not fields.pop("unstarted")
    return StoredCall(session_id=session_id, at=at, **fields)
