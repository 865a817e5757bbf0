"""The SQL of paused calls on a separate connection: lists, expiry, and results of runs that have not ended."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from toold.protocol.input_request import InputDecision, InputRequest
from toold.store import CallEnd, CallPause, CallRow, CallStart, DetachedRequest, InputDecided, SessionRow, decision_hash
from toold.store.sqlite import detached_sql, journal_sql, pause_sql, run_sql, session_sql
from toold.store.sqlite.store_schema import open_database

NO_LIMIT_BYTES = 2**30
DAY = 86_400.0

MakeRow = Callable[..., CallRow]
Start = Callable[..., None]


@pytest.fixture
def connection(database: Path) -> Iterator[sqlite3.Connection]:
    with closing(open_database(database)) as connection:
        yield connection


def pause(call_id: str, *ids: str, expires_at: float = 100.0, drops_at: float = 1000.0) -> CallPause:
    requests = tuple(InputRequest(request_id, "question", text="?") for request_id in ids)
    return CallPause(
        call_id=call_id, requests=requests, expires_at=expires_at, drops_at=drops_at, remaining_s=30.0
    )  # fmt: skip


@pytest.fixture
def start(connection: sqlite3.Connection, row: MakeRow) -> Start:
    """Starts a detached call that is paused from its beginning."""

    def starts(call_id: str, *, run: str | None = None, principal: str = "ann") -> None:
        session = SessionRow(
            id=f"s-{call_id}", key_hash=call_id.encode(), principal=principal, label="l", toolset="full", opened_at=1.0
        )
        session_sql.open_session(connection, session)
        request = DetachedRequest(arguments=b"{}", client=b"{}", deadline_at=99.0, run=run)
        call = CallStart(
            session_id=session.id, request_key="scall", echo_id=False, arguments_hash=b"h", orchestration=True,
            row=row(id=call_id, tool="clerk", principal=principal, started_at=10.0), detached=request,
            pause=pause(call_id, "q"),
        )  # fmt: skip
        journal_sql.start(connection, [call])

    return starts


def child(connection: sqlite3.Connection, row: CallRow, run: str, name: str, *, at: float, size: int = 2) -> None:
    """A child call that has ended."""
    started = CallStart(
        session_id=run, request_key=name, echo_id=False, arguments_hash=b"h", row=row, child=True
    )  # fmt: skip
    journal_sql.start(connection, [started])
    end = CallEnd(session_id=run, request_key=name, result=b"x" * size, at=at, row=row)
    journal_sql.end(connection, [end], max_bytes=NO_LIMIT_BYTES)


def decided(call_id: str, request_id: str, row: CallRow, at: float = 50.0) -> InputDecided:
    return InputDecided(
        call_id=call_id, request_id=request_id, decision=InputDecision("answer", text="yes"), at=at, row=row
    )  # fmt: skip


def state(connection: sqlite3.Connection, run: str, name: str) -> str | None:
    stored = session_sql.child_call(connection, run, name, "ann", results_since=0.0)
    return None if stored is None else stored.state


def test_a_call_is_paused_until_its_last_decision(connection: sqlite3.Connection, start: Start, row: MakeRow) -> None:
    """Then it has the rest of its time, and is one of the calls that resume."""
    start("e-1")
    pause_sql.pause(connection, pause("e-1", "q", "r"))
    assert detached_sql.unfinished(connection) == []
    pause_sql.decide(connection, decided("e-1", "q", row()))
    assert pause_sql.paused_ids(connection, "ann") == ["e-1"]
    pause_sql.decide(connection, decided("e-1", "r", row()))
    assert pause_sql.paused_ids(connection, "ann") == []
    (call,) = detached_sql.unfinished(connection)
    assert (call.deadline_at, call.expires_at) == (80.0, None)
    assert [(each.request.id, each.decision and each.decision.text) for each in call.requests] == [
        ("q", "yes"), ("r", "yes"),
    ]  # fmt: skip


def test_decisions_are_known_after_the_end_without_their_content(
    connection: sqlite3.Connection, start: Start, row: MakeRow
) -> None:
    """Only their hashes stay, as long as the call's id, for the call's principal."""
    start("e-1")
    pause_sql.decide(connection, decided("e-1", "q", row()))
    made = {"q": decision_hash(InputDecision("answer", text="yes"))}
    end = CallEnd(session_id="s-e-1", request_key="scall", result=b"{}", at=60.0, row=row())
    journal_sql.end(connection, [end], max_bytes=NO_LIMIT_BYTES)
    assert pause_sql.decision_hashes(connection, "e-1", "ann") == made
    assert pause_sql.decision_hashes(connection, "e-1", "bob") == {}
    assert connection.execute("SELECT request, decision FROM input_request").fetchall() == [(None, None)]
    for _ in range(2):
        journal_sql.delete_expired(connection, 60.0 + 8 * DAY, result_ttl_s=1.0)
    assert connection.execute("SELECT count(*) FROM input_request").fetchone() == (0,)


def test_requests_expire_in_order_and_not_after_the_run_is_dropped(
    connection: sqlite3.Connection, start: Start
) -> None:
    """A later pause does not move the time at which the run is dropped."""
    start("e-1")
    start("e-2")
    pause_sql.pause(connection, pause("e-2", "r", expires_at=5000.0, drops_at=6000.0))
    assert pause_sql.next_expiry(connection) == 100.0
    assert pause_sql.due_ids(connection, 99.0) == []
    assert pause_sql.due_ids(connection, 1000.0) == ["e-1", "e-2"]
    assert pause_sql.next_expiry(connection) == 100.0


def test_lists_are_bounded(connection: sqlite3.Connection, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list has the oldest calls; the number counts all of one principal."""
    monkeypatch.setattr(pause_sql, "LISTED", 2)
    for number in range(3):
        start(f"e-{number}")
    start("f-1", principal="bob")
    assert pause_sql.paused_ids(connection, "ann") == pause_sql.paused_ids(connection, None) == ["e-0", "e-1"]
    assert (pause_sql.paused_count(connection, "ann"), pause_sql.paused_count(connection, "bob")) == (3, 1)


def test_results_of_a_run_that_has_not_ended_stay(connection: sqlite3.Connection, start: Start, row: MakeRow) -> None:
    """However old they, their ids and their run are, also of nested children, until the run has ended."""
    start("e-2", run="e-1")
    made = row(principal="ann")
    child(connection, made, "e-1", "a", at=60.0)
    child(connection, made, "e-1/a", "b", at=60.0)
    child(connection, made, "e-10", "other", at=60.0)
    run_sql.finish(connection, ["e-10"])
    later = 60.0 + 29 * DAY
    for _ in range(2):
        journal_sql.delete_expired(connection, later, result_ttl_s=DAY)
    assert [state(connection, run, name) for run, name in (("e-1", "a"), ("e-1/a", "b"), ("e-10", "other"))] == [
        "done", "done", None,
    ]  # fmt: skip
    assert connection.execute("SELECT run FROM run WHERE call_id = 'e-2'").fetchall() == [("e-1",)]
    assert not run_sql.has_finished(connection)
    run_sql.finish(connection, ["e-1"])
    journal_sql.delete_expired(connection, later, result_ttl_s=DAY)
    assert state(connection, "e-1", "a") is None


def test_runs_of_the_previous_process_have_ended_unless_they_resume(
    connection: sqlite3.Connection, start: Start, row: MakeRow
) -> None:
    """After a crash only the runs of detached calls keep their results."""
    start("e-2", run="e-1")
    made = row(principal="ann")
    child(connection, made, "e-1/x", "a", at=60.0)
    child(connection, made, "e-9", "a", at=60.0)
    assert run_sql.has_finished(connection)
    run_sql.finish_all(connection)
    assert not run_sql.has_finished(connection)
    assert connection.execute("SELECT session_id FROM journal WHERE unfinished").fetchall() == [("e-1/x",)]


def test_unfinished_results_have_a_limit_of_their_own(
    connection: sqlite3.Connection, start: Start, row: MakeRow
) -> None:
    """They do not displace other results; beyond their limit the oldest go, and their detached call is marked."""
    start("e-1")
    start("e-2")
    made = row(principal="ann")
    child(connection, made, "e-1", "old", at=1.0, size=60)
    child(connection, made, "e-2", "new", at=2.0, size=60)
    child(connection, made, "e-3", "ended", at=0.5, size=10)
    run_sql.finish(connection, ["e-3"])
    journal_sql.enforce_results_limit(connection, 10)
    assert state(connection, "e-3", "ended") == "done"
    journal_sql.enforce_unfinished_limit(connection, 120)
    assert pause_sql.due_ids(connection, 0.0) == []
    journal_sql.enforce_unfinished_limit(connection, 119)
    assert (state(connection, "e-1", "old"), state(connection, "e-2", "new")) == ("expired", "done")
    assert pause_sql.due_ids(connection, 0.0) == ["e-1"]
