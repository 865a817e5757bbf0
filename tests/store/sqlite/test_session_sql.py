"""The SQL of sessions on a separate connection."""

import sqlite3
from typing import TYPE_CHECKING

from msgspec.structs import replace
from toold.store.sqlite import interrupted_sql, journal_sql, session_sql

if TYPE_CHECKING:
    from tests.store.conftest import Journalled as Call

NO_LIMIT_BYTES = 2**30


def states(connection: sqlite3.Connection, session: str) -> dict[str, str]:
    return dict(connection.execute("SELECT request_key, state FROM journal WHERE session_id = ?", (session,)))


def make_calls(connection: sqlite3.Connection, call: "Call", session: str) -> None:
    """One call that has ended and one that runs."""
    journal_sql.start(connection, [replace(call.starts(key), session_id=session) for key in ("ended", "runs")])
    journal_sql.end(connection, [replace(call.ends("ended"), session_id=session)], max_bytes=NO_LIMIT_BYTES)


def test_closed_session_is_deleted(connection: sqlite3.Connection, call: "Call") -> None:
    """Closing a session deletes its ended calls at once and its running calls when they end; other sessions keep
    theirs."""
    for name in "st":
        session_sql.open_session(connection, replace(call.session, id=name, key_hash=name.encode()))
        make_calls(connection, call, name)
    session_sql.close_session(connection, "s")
    assert session_sql.load_session(connection, b"s", results_since=0.0) is None
    assert states(connection, "s") == {"runs": "started"}
    journal_sql.end(
        connection, [replace(call.ends("runs"), session_id=name) for name in "st"], max_bytes=NO_LIMIT_BYTES
    )
    assert states(connection, "s") == {}
    assert states(connection, "t") == {"ended": "done", "runs": "done"}


def test_ids_of_unstored_sessions_are_known_until_a_restart(connection: sqlite3.Connection, call: "Call") -> None:
    """Calls of an unstored session are journalled, and deleted when the session closes or the daemon restarts."""
    session_sql.open_session(connection, call.session)
    for name in (call.session.id, "plain"):
        make_calls(connection, call, name)
    assert journal_sql.start(connection, [replace(call.starts("ended"), session_id="plain")]) == [False]
    assert session_sql.has_orphaned_calls(connection)
    session_sql.delete_orphaned_calls(connection)
    assert states(connection, call.session.id) == {"ended": "done", "runs": "started"}
    assert states(connection, "plain") == {"runs": "started"}
    session_sql.close_session(connection, "plain")
    journal_sql.end(connection, interrupted_sql.interrupted_calls(connection, 1.0), max_bytes=NO_LIMIT_BYTES)
    assert not session_sql.has_orphaned_calls(connection)


def test_opening_a_session_again_changes_nothing(connection: sqlite3.Connection, call: "Call") -> None:
    """Opening a session a second time keeps the first key."""
    session_sql.open_session(connection, call.session)
    session_sql.open_session(connection, replace(call.session, key_hash=b"another"))
    assert session_sql.load_session(connection, b"another", results_since=0.0) is None
    assert session_sql.load_session(connection, call.session.key_hash, results_since=0.0)


def test_seen_time_never_decreases(connection: sqlite3.Connection, call: "Call") -> None:
    """A seen time that arrives late does not replace a later one."""
    session_sql.open_session(connection, replace(call.session, opened_at=0.0))
    session_sql.mark_seen(connection, [call.session.id], 9.0)
    session_sql.mark_seen(connection, [call.session.id], 5.0)
    assert connection.execute("SELECT seen_at FROM session").fetchone() == (9.0,)


def test_a_session_stays_former(connection: sqlite3.Connection, call: "Call") -> None:
    """A session that used an argument name of an earlier server is loaded as such, also if it is opened again."""
    for former in (False, True, False):
        session_sql.open_session(connection, replace(call.session, former=former))
    stored = session_sql.load_session(connection, call.session.key_hash, results_since=0.0)
    assert stored is not None
    assert stored.row.former is True
