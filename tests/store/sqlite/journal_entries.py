"""Entries of the journal for tests of its SQL, and what the database then contains."""

import sqlite3
from collections.abc import Callable

from toold.store import CallEnd, CallRow, CallStart, SessionRow, StoredCall
from toold.store.sqlite import journal_sql, session_sql

MakeRow = Callable[..., CallRow]


DAY = 86400.0


NO_LIMIT_BYTES = 2**30


ROW = CallRow(
    id="c",
    started_at=5.0,
    transport="websocket",
    principal="local",
    session_id="s",
    session_label="l",
    client="",
    request_id='"1"',
    tool="chat",
    outcome="OUTCOME_UNKNOWN",
    latency_ms=1.0,
)


def session_row(name: str = "s", at: float = 0.0, principal: str = "local") -> SessionRow:
    return SessionRow(id=name, key_hash=name.encode(), principal=principal, label="l", toolset="standard", opened_at=at)


def starting(*keys: str, session: str = "s", row: CallRow = ROW) -> list[CallStart]:
    return [
        CallStart(session_id=session, request_key=key, echo_id=False, arguments_hash=key.encode(), row=row)
        for key in keys
    ]


def ending(key: str, result: bytes | None = b"{}", at: float = 10.0, session: str = "s") -> CallEnd:
    return CallEnd(session_id=session, request_key=key, result=result, at=at, row=ROW)


def answer(key: str, result: bytes = b"{}", at: float = 10.0, session: str = "s") -> StoredCall:
    return StoredCall(
        session_id=session,
        request_key=key,
        echo_id=True,
        tool="echo",
        arguments_hash=b"h",
        local=True,
        state="done",
        result=result,
        at=at,
    )


def run(connection: sqlite3.Connection, *ends: CallEnd) -> None:
    """Start calls and end them."""
    journal_sql.start(connection, [item for end in ends for item in starting(end.request_key, session=end.session_id)])
    journal_sql.end(connection, ends, max_bytes=NO_LIMIT_BYTES)


def states(connection: sqlite3.Connection, session: str = "s") -> dict[str, str]:
    return dict(connection.execute("SELECT request_key, state FROM journal WHERE session_id = ?", (session,)))


def kept_bytes(connection: sqlite3.Connection) -> int:
    """The recorded total size of all principals' results."""
    (total,) = connection.execute("SELECT coalesce(sum(bytes), 0) FROM kept").fetchone()
    return int(total)


def results(connection: sqlite3.Connection, since: float = 0.0) -> dict[str, tuple[str, bytes | None]]:
    session = session_sql.load_session(connection, b"s", results_since=since)
    assert session
    return {call.request_key: (call.state, call.result) for call in session.calls}
