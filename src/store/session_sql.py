"""The SQL of sessions that can be come back to, and of what the journal knows of their calls.

Each function is one short piece of work within a transaction of the caller's.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from ..protocol.session_calls import REMEMBERED_IDS
from .store_rows import SessionRow, StoredCall, StoredCallState, StoredSession


def open_session(connection: sqlite3.Connection, row: SessionRow) -> None:
    """Add a session; one that is there stays as it is."""
    connection.execute(
        "INSERT INTO session (id, key_hash, principal, label, toolset, opened_at, seen_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
        (row.id, row.key_hash, row.principal, row.label, row.toolset, row.opened_at, row.opened_at),
    )


def see(connection: sqlite3.Connection, session_ids: Sequence[str], at: float) -> None:
    """Note that clients hold, or held, these sessions at a Unix time."""
    connection.execute(
        "UPDATE session SET seen_at = max(seen_at, ?) WHERE id IN (SELECT value FROM json_each(?))",
        (at, json.dumps(session_ids)),
    )


def close_session(connection: sqlite3.Connection, session_id: str) -> None:
    """Remove a session and its calls; one that has not ended yet goes when it ends."""
    connection.execute("DELETE FROM session WHERE id = ?", (session_id,))
    connection.execute("DELETE FROM journal WHERE session_id = ? AND state != 'started'", (session_id,))
    connection.execute("UPDATE journal SET session_closed = 1 WHERE session_id = ?", (session_id,))


def has_plain(connection: sqlite3.Connection) -> bool:
    """Whether there are calls of clients that cannot come back: those without a session, but for children."""
    (found,) = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM journal WHERE NOT child AND session_id NOT IN (SELECT id FROM session))"
    ).fetchone()
    return bool(found)


def remove_plain(connection: sqlite3.Connection) -> None:
    """Remove them, as far as they have ended; for the start of a daemon, when nobody holds such a session."""
    connection.execute(
        "DELETE FROM journal WHERE state != 'started' AND NOT child AND session_id NOT IN (SELECT id FROM session)"
    )


_FOUND: Final = ("request_key", "echo_id", "tool", "arguments_hash", "local", "state", "result", "ended_at")


def session(connection: sqlite3.Connection, key_hash: bytes, *, results_since: float) -> StoredSession | None:
    """A session by its key, with those of its calls that ended last, as many as a session has in memory.

    Results that are older than a Unix time count as gone.
    """
    found = connection.execute(
        "SELECT id, key_hash, principal, label, toolset, opened_at FROM session WHERE key_hash = ?", (key_hash,)
    ).fetchone()
    if found is None:
        return None
    row = SessionRow(**dict(zip(SessionRow.__struct_fields__, found, strict=True)))
    # The newest are found without their results, and sorted here: SQLite would carry the results through its sorter.
    ended = connection.execute(
        f"SELECT {', '.join(_FOUND)} FROM journal LEFT JOIN result USING (number) WHERE number IN ("  # noqa: S608 - our own names
        "SELECT number FROM journal WHERE session_id = ? AND state != 'started' "
        "ORDER BY ended_at DESC, number DESC LIMIT ?) ORDER BY number",
        (row.id, REMEMBERED_IDS),
    )
    kept = [_kept(row.id, fields, results_since) for fields in ended]
    return StoredSession(
        row=row, calls=sorted(filter(None, kept), key=lambda call: call.at), more=len(kept) == REMEMBERED_IDS
    )


def answered(
    connection: sqlite3.Connection, session_id: str, request_key: str, *, results_since: float
) -> StoredCall | None:
    """A session's journalled call that has ended. What is older than a Unix time counts as gone."""
    found = connection.execute(
        f"SELECT {', '.join(_FOUND)} FROM journal LEFT JOIN result USING (number) "  # noqa: S608 - our own names
        "WHERE session_id = ? AND request_key = ? AND state != 'started' AND NOT local AND NOT child",
        (session_id, request_key),
    ).fetchone()
    if found is None:
        return None
    known = _kept(session_id, found, results_since)
    if known is not None and known.at < results_since:
        return replace(known, state="expired", result=None)
    return known


def states(
    connection: sqlite3.Connection, session_id: str, request_keys: Sequence[str], *, results_since: float
) -> dict[str, StoredCallState]:
    """What is known of a session's journalled calls, of each that is. What is older than a Unix time counts as gone;
    so does what has not ended, for whoever asks about calls that do not run.
    """
    found = connection.execute(
        "SELECT request_key, CASE WHEN state != 'started' AND ended_at >= ? THEN state ELSE 'expired' END "
        "FROM json_each(?) CROSS JOIN journal ON session_id = ? AND request_key = json_each.value "
        "WHERE NOT local AND NOT child",
        (results_since, json.dumps(request_keys), session_id),
    )
    return dict(found.fetchall())


def child(
    connection: sqlite3.Connection, run: str, name: str, principal: str, *, results_since: float
) -> StoredCall | None:
    """What is known of a child; one that is written down as started is interrupted. As ``session`` tells of calls."""
    found = connection.execute(
        f"SELECT {', '.join(_FOUND)} FROM journal LEFT JOIN result USING (number) "  # noqa: S608 - our own names
        "WHERE session_id = ? AND request_key = ? AND principal = ? AND child",
        (run, name, principal),
    ).fetchone()
    if found is None:
        return None
    fields = dict(zip(_FOUND, found, strict=True))
    if fields["state"] == "started":
        fields |= {"state": "interrupted", "ended_at": 0.0}
    return _kept(run, fields.values(), results_since)


def _kept(session_id: str, columns: Iterable[Any], results_since: float) -> StoredCall | None:
    fields = dict(zip(_FOUND, columns, strict=True))
    at = fields.pop("ended_at")
    if fields["state"] == "done" and at < results_since:
        if fields["local"]:
            return None
        fields |= {"state": "expired", "result": None}
    fields |= {"local": bool(fields["local"]), "echo_id": bool(fields["echo_id"])}
    return StoredCall(session_id=session_id, at=at, **fields)
