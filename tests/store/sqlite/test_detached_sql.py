"""The SQL of detached calls on a separate connection."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from toold.store import CallEnd, CallRow, CallStart, DetachedRequest, SessionRow, Store
from toold.store.sqlite import detached_sql, interrupted_sql, journal_sql, session_sql
from toold.store.sqlite.store_schema import open_database

NO_LIMIT_BYTES = 2**30

MakeRow = Callable[..., CallRow]

SESSION = SessionRow(id="s", key_hash=b"k", principal="ann", label="l", toolset="lean", opened_at=1.0)
ORDER = DetachedRequest(arguments=b'{"items":[1]}', client=b"{}", deadline_at=99.0)


@pytest.fixture
def connection(database: Path) -> Iterator[sqlite3.Connection]:
    with closing(open_database(database)) as connection:
        session_sql.open_session(connection, SESSION)
        yield connection


@pytest.fixture
def call(row: MakeRow) -> CallStart:
    """A detached call of the session."""
    started = row(id="e-1", tool="execute_batch", principal="ann", started_at=10.0)
    return CallStart(
        session_id="s", request_key="n1", echo_id=False, arguments_hash=b"h", row=started, orchestration=True,
        detached=ORDER,
    )  # fmt: skip


def test_unfinished_detached_call_is_found_with_its_request(connection: sqlite3.Connection, call: CallStart) -> None:
    """An unfinished detached call is found with its request, session and tool, and does not count as interrupted."""
    journal_sql.start(connection, [call])
    (result,) = detached_sql.unfinished(connection)
    assert (result.call_id, result.request_key, result.tool, result.started_at) == ("e-1", "n1", "execute_batch", 10.0)
    assert (result.arguments, result.client, result.deadline_at) == (ORDER.arguments, ORDER.client, ORDER.deadline_at)
    assert result.session == SESSION
    assert interrupted_sql.interrupted_calls(connection, 20.0) == []


def test_request_is_deleted_when_the_call_ends(connection: sqlite3.Connection, call: CallStart) -> None:
    """The end of a call deletes its arguments and stores its result."""
    journal_sql.start(connection, [call])
    end = CallEnd(session_id="s", request_key="n1", result=b"{}", at=12.0, row=call.row)
    journal_sql.end(connection, [end], max_bytes=NO_LIMIT_BYTES)
    assert detached_sql.unfinished(connection) == []
    assert connection.execute("SELECT count(*) FROM detached").fetchone() == (0,)
    session = session_sql.load_session(connection, b"k", results_since=0.0)
    assert session is not None
    assert [call.result for call in session.calls] == [b"{}"]


async def test_next_process_finds_the_detached_call(open_store: Callable[..., Store], call: CallStart) -> None:
    """A detached call that had not ended when its process did is found at the next start."""
    store = open_store()
    store.sessions.open(SESSION)
    assert await store.journal.start(call)
    await store.close()
    reopened = open_store()
    assert [detached_call.call_id for detached_call in await reopened.journal.detached_calls()] == ["e-1"]
    await reopened.close()


async def test_call_is_found_by_its_id_and_principal(open_store: Callable[..., Store], row: MakeRow) -> None:
    """An ended call is found by its id and principal; other principals and other ids find nothing."""
    store = open_store()
    store.audit.record(row(id="e-7", principal="ann", outcome="ok"))
    call = await store.audit.find_call("e-7", "ann")
    assert call is not None
    assert call.outcome == "ok"
    assert await store.audit.find_call("e-7", "bob") is None
    assert await store.audit.find_call("e-8", "ann") is None
    await store.close()
