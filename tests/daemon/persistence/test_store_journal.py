"""The journal on a real store: entries before a call starts, before its answer is sent, and after a crash."""

import asyncio
import functools
import json
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest
from structlog.testing import capture_logs
from toold.daemon.dispatch import CallPort, RunningCall, Session, UsageMeter
from toold.daemon.observability.call_recorder import CallRecorder
from toold.daemon.observability.metrics import Metrics
from toold.daemon.persistence.store_journal import StoreJournal
from toold.fairness import Permits
from toold.protocol.error_codes import ServiceUnavailableError
from toold.protocol.result_cache import ResultCache
from toold.protocol.session_calls import REMEMBERED_IDS, SessionCalls
from toold.protocol.session_registry import hash_key
from toold.protocol.tool_call import (
    LOCAL,
    ClientInfo,
    Metadata,
    Principal,
    TextContent,
    Timings,
    ToolCall,
    ToolResult,
    decode_result,
    encode_result,
)
from toold.store import Retention, Store, StoredCall, StoreError, open_sqlite_store

RESULT = ToolResult(Metadata(1000.0, Timings(tool_ms=900.0)), (TextContent("done"),))
KEY = hash_key("key")


class Counted:
    """Metrics that record the outcomes of calls."""

    def __init__(self) -> None:
        self.outcomes: list[str] = []

    def call_ended(self, tool: str, result: ToolResult) -> None:
        self.outcomes.append(result.outcome)


@pytest.fixture
def counted() -> Counted:
    return Counted()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "toold.db"


@pytest.fixture
def open_store(database: Path, audit_key: bytes, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Store]:
    """A function that opens a store on ``database`` that does not wait for locks."""
    monkeypatch.setattr(sqlite3, "connect", functools.partial(sqlite3.connect, timeout=0))
    return lambda: open_sqlite_store(database, content=json.dumps, retention=Retention(), key=audit_key)


@pytest.fixture
async def store(open_store: Callable[[], Store]) -> AsyncIterator[Store]:
    store = open_store()
    yield store
    await store.close()


def journal_on(store: Store, counted: Counted) -> StoreJournal:
    return StoreJournal(store, CallRecorder(store.audit, cast("Metrics", counted)))


@pytest.fixture
def journal(store: Store, counted: Counted) -> StoreJournal:
    return journal_on(store, counted)


@pytest.fixture
def locked(database: Path, store: Store) -> Iterator[sqlite3.Connection]:
    """The database is locked until this is rolled back."""
    with closing(sqlite3.connect(database, timeout=30, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


@pytest.fixture
def session() -> Session:
    """A session that its client can resume."""
    return session_with(KEY)


def session_with(key_hash: bytes | None) -> Session:
    return Session(
        id="s-1",
        principal_name="local",
        calls=SessionCalls(32, ResultCache(10**6, 60)),
        key_hash=key_hash,
        label="my-label",
        principal=LOCAL,
        client=ClientInfo("ide", "2"),
        toolset="standard",
        transport="websocket",
        streaming=False,
        permits=Permits("session", 8),
        absent_port=cast("CallPort", None),
    )


def accepted(session: Session, key: str = "n1", name: str = "effect") -> RunningCall:
    """A call that its session has accepted."""
    arguments = {"text": "x"}
    session.calls.register(key, name, ToolCall(key, name, arguments), time.monotonic())
    call = SimpleNamespace(
        long_result=False,
        changed_by=None,
        result_changed_by=None,
        id=f"call-{key}",
        key=key,
        session=session,
        request=ToolCall(int(key[1:]), name, arguments, frame_bytes=40, echo_id=True),
        tool=SimpleNamespace(
            typed=msgspec.UNSET,
            name=name,
            local=name == "echo",
            repeatable=False,
            orchestration=name == "compose",
            mask=None,
        ),
        started=time.monotonic() - 0.5,
        started_at=time.time(),
        meter=UsageMeter(queue_s=0.25),
        scope=session.id,
        parent_scope=None,
        paused=None,
        continued_by=None,
        deadline=time.monotonic() + 30,
        detached=False,
        mask=None,
        shaping=None,
        response=None,
        argument_notices=(),
        parent=None,
        child_scope=None,
    )
    return cast("RunningCall", call)


async def found(journal: StoreJournal) -> dict[str, StoredCall]:
    """The stored calls of the session ``key``."""
    stored = await journal.find_session(KEY)
    assert stored is not None
    return {call.request_key: call for call in stored.calls}


async def test_unfinished_call_is_found_as_interrupted(
    session: Session, open_store: Callable[[], Store], counted: Counted
) -> None:
    """At the next start an unfinished call is interrupted; its audit row has its waiting time and no arguments."""
    before = open_store()
    journal = journal_on(before, counted)
    journal.session_opened(session)
    assert await journal.start_call(accepted(session), replace=False)
    await before.close()
    later = open_store()
    call = (await found(journal_on(later, counted)))["n1"]
    (row,) = await later.audit.recent(10)
    await later.close()
    assert (call.state, call.tool, call.echo_id, call.local) == ("interrupted", "effect", True, False)
    assert call.arguments_hash == session.calls.arguments_hash("n1")
    assert (row.id, row.outcome, row.arguments, row.queue_ms) == ("call-n1", "OUTCOME_UNKNOWN", None, 250.0)
    assert row.latency_ms >= 500


async def test_result_is_stored_when_end_call_returns(
    store: Store, journal: StoreJournal, session: Session, counted: Counted
) -> None:
    """When ``end_call`` returns, the result and its audit row are stored, and the outcome is counted once."""
    journal.session_opened(session)
    running = accepted(session)
    await journal.start_call(running, replace=False)
    before = time.time()
    await journal.end_call(running, RESULT, bytes(123))
    call = (await found(journal))["n1"]
    (row,) = await store.audit.recent(10)
    assert (call.state, before <= call.at <= time.time()) == ("done", True)
    assert call.result is not None
    assert decode_result(call.result) == RESULT
    assert (row.id, row.outcome, row.result_bytes, row.session_label) == ("call-n1", "ok", 123, "my-label")
    assert counted.outcomes == ["ok"]


async def test_call_states_are_read_from_the_store(
    store: Store, journal: StoreJournal, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended calls and their states are read from the store; a failed read never reports "not executed"."""
    running = accepted(session)
    journal.session_opened(session)
    await journal.start_call(running, replace=False)
    assert await journal.earlier_call(running) is None
    await journal.end_call(running, RESULT, b"1")
    call = await journal.earlier_call(running)
    assert call is not None
    assert (call.state, call.tool) == ("done", "effect")
    keys = [f"n{number}" for number in range(REMEMBERED_IDS + 2)]
    assert await journal.call_states(session, [*reversed(keys)]) == {"n1": "done"}

    async def broken(*_: object) -> None:
        raise StoreError("broken", "broken")

    monkeypatch.setattr(store.sessions, "ended_call", broken)
    monkeypatch.setattr(store.sessions, "call_states", broken)
    with pytest.raises(ServiceUnavailableError) as refusal:
        await journal.earlier_call(running)
    assert refusal.value.executed == "maybe"
    with pytest.raises(ServiceUnavailableError):
        await journal.call_states(session, keys)


async def test_call_states_time_out(
    store: Store, journal: StoreJournal, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read that gets no response from the disk times out."""

    async def hung(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(store.sessions, "call_states", hung)
    monkeypatch.setattr("toold.daemon.persistence.store_journal.WRITE_TIMEOUT_S", 0.01)
    with pytest.raises(ServiceUnavailableError):
        await journal.call_states(session, ["n1"])


async def test_id_starts_once(journal: StoreJournal, session: Session) -> None:
    """An id starts once, even after its call ended or its result was acknowledged."""
    journal.session_opened(session)
    running = accepted(session)
    assert await journal.start_call(running, replace=False)
    assert not await journal.start_call(running, replace=False)
    await journal.end_call(running, RESULT, b"1")
    journal.acknowledged(session, ["n1"])
    assert not await journal.start_call(running, replace=False)
    assert (await found(journal))["n1"].state == "expired"


async def test_results_of_plain_sessions_are_not_stored(
    database: Path, store: Store, journal: StoreJournal, session: Session
) -> None:
    """A plain session's ids are known until it is closed; then only its audit rows stay."""
    plain = session_with(None)
    journal.session_opened(plain)
    running = accepted(plain)
    await journal.start_call(running, replace=False)
    await journal.end_call(running, RESULT, b"1")
    with closing(sqlite3.connect(database)) as reader:
        assert reader.execute("SELECT state, result_bytes FROM journal").fetchall() == [("expired", 0)]
        journal.session_closed(plain)
        await store.flush()
        assert reader.execute("SELECT count(*) FROM journal").fetchone() == (0,)
        assert reader.execute("SELECT count(*) FROM session").fetchone() == (0,)
    assert len(await store.audit.recent(10)) == 1


async def test_child_results_are_always_stored(store: Store, journal: StoreJournal) -> None:
    """A plain client's child results are stored, because a later run of its principal may resume them."""
    plain = session_with(None)
    running = accepted(plain)
    running.__dict__.update(scope="e-1", key="step", parent=running)
    assert await journal.start_call(running, replace=False)
    await journal.end_call(running, RESULT, encode_result(RESULT))
    journal.session_closed(plain)
    known = await journal.earlier_child(running)
    assert known is not None
    assert (known.state, known.result and decode_result(known.result)) == ("done", RESULT)


async def test_run_is_found_and_resumed(journal: StoreJournal, session: Session) -> None:
    """A run is found by the call that began it and by the call that resumed it, for its principal only."""
    first, second = accepted(session, "n1", "compose"), accepted(session, "n2", "compose")
    for running in (first, second):
        await journal.start_call(running, replace=False)
    assert await journal.find_run("call-n1", LOCAL, "compose") == "call-n1"
    await journal.resume_run(second, "call-n1")
    assert await journal.find_run("call-n2", LOCAL, "compose") == "call-n1"
    assert await journal.find_run("call-n2", Principal("somebody"), "compose") is None


async def test_failed_write_resumes_no_run(
    store: Store, journal: StoreJournal, session: Session, locked: sqlite3.Connection
) -> None:
    """A run that cannot be recorded is not resumed, because a later run would repeat its calls."""
    with pytest.raises(ServiceUnavailableError):
        await journal.resume_run(accepted(session), "call-n1")


async def test_local_results_are_stored_with_their_times(journal: StoreJournal, session: Session) -> None:
    """A local result keeps its time when it is stored."""
    journal.session_opened(session)
    accepted(session, "n2", "echo")
    session.calls.finish("n2", RESULT, 10, 10, time.monotonic() - 30, journalled=False)
    assert await journal.persist_local_results([(session, item) for item in session.calls.retained(time.monotonic())])
    call = (await found(journal))["n2"]
    assert (call.state, call.local, call.tool) == ("done", True, "echo")
    assert call.arguments_hash == session.calls.arguments_hash("n2")
    assert call.at == pytest.approx(time.time() - 30, abs=10)
    assert call.result is not None
    assert decode_result(call.result) == RESULT


async def test_sessions_are_marked_as_seen(
    database: Path, store: Store, journal: StoreJournal, session: Session
) -> None:
    """The seen time of a session is updated, so that it expires later."""
    journal.session_opened(session)
    await store.flush()
    with closing(sqlite3.connect(database)) as other:
        other.execute("UPDATE session SET seen_at = 1")
        other.commit()
        journal.sessions_seen(iter([session]))
        await store.flush()
        assert other.execute("SELECT seen_at > 1 FROM session").fetchall() == [(1,)]


async def test_unwritable_store_starts_no_call_and_persists_no_result(
    journal: StoreJournal, session: Session, locked: sqlite3.Connection
) -> None:
    """A start fails as retryable and not executed, and local results are not stored; the log reports it."""
    with capture_logs() as lines:
        with pytest.raises(ServiceUnavailableError) as reported:
            await journal.start_call(accepted(session), replace=False)
        assert "database is locked" in reported.value.message
        assert (reported.value.executed, reported.value.retryable) == ("no", True)
        assert not journal.writable
        accepted(session, "n2", "echo")
        session.calls.finish("n2", RESULT, 10, 10, time.monotonic(), journalled=False)
        assert not await journal.persist_local_results(
            [(session, item) for item in session.calls.retained(time.monotonic())]
        )
    assert [line["results"] for line in lines if "results" in line] == [1]
    locked.execute("ROLLBACK")


async def test_result_is_sent_although_its_write_fails(
    store: Store,
    journal: StoreJournal,
    session: Session,
    database: Path,
    counted: Counted,
) -> None:
    """The log reports that the result was sent before it was stored; it is stored once the disk works again."""
    journal.session_opened(session)
    running = accepted(session)
    await journal.start_call(running, replace=False)
    with closing(sqlite3.connect(database, timeout=30, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with capture_logs() as lines:
            await journal.end_call(running, RESULT, b"1")
        other.execute("ROLLBACK")
    reported = [line for line in lines if line["event"] == "result sent before it was persisted"]
    assert [(line["tool"], "locked" in line["reason"]) for line in reported] == [("effect", True)]
    assert counted.outcomes == ["ok"]
    while not journal.writable:
        await store.flush()
    assert (await found(journal))["n1"].state == "done"


async def test_end_call_times_out(journal: StoreJournal, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the timeout the caller gets the answer, and the log has the reason."""
    monkeypatch.setattr(journal, "_write_timeout_s", 0.0)
    running = accepted(session)
    await journal.start_call(running, replace=False)
    with capture_logs() as lines:
        await journal.end_call(running, RESULT, b"1")
    assert [line["reason"] for line in lines if "reason" in line] == ["no response within 0 s"]


@pytest.fixture
def shared_journal(store: Store, counted: Counted) -> StoreJournal:
    """The journal of a node of a cluster."""
    return StoreJournal(store, CallRecorder(store.audit, cast("Metrics", counted)), shared=True)


async def test_a_node_sends_no_result_that_is_not_persisted(
    store: Store, shared_journal: StoreJournal, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a shared database an answer waits as long as its write does, and is withheld if the write fails."""
    journal, writing = shared_journal, asyncio.Event()

    async def slow(_: object) -> None:
        await writing.wait()

    async def refused(_: object) -> None:
        raise StoreError("closed", "closed")

    monkeypatch.setattr("toold.daemon.persistence.store_journal.WRITE_TIMEOUT_S", 0.0)
    monkeypatch.setattr(store.journal, "end", slow)
    ending = asyncio.create_task(journal.end_call(accepted(session), RESULT, b"1"))
    await asyncio.wait([ending], timeout=0.05)
    assert not ending.done()
    writing.set()
    await ending
    monkeypatch.setattr(store.journal, "end", refused)
    with capture_logs() as lines:
        withheld = asyncio.create_task(journal.end_call(accepted(session, "n2"), RESULT, b"1"))
        await asyncio.wait([withheld], timeout=0.05)
        assert not withheld.done()
    assert lines[-1]["event"] == "result withheld, because it cannot be persisted"
    withheld.cancel()


async def test_a_node_refuses_calls_at_once_without_its_database(
    shared_journal: StoreJournal, session: Session, locked: sqlite3.Connection
) -> None:
    """A call that did not start, because its start could not be persisted, is refused although that cannot be
    persisted either; and no session is promised to its client.
    """
    journal, call = shared_journal, accepted(session)
    with pytest.raises(ServiceUnavailableError) as refused:
        await journal.start_call(call, replace=False)
    refusal = ToolResult(Metadata(0.0, Timings()), error=refused.value.to_tool_error())
    assert await journal.end_unstarted_call(call, refusal, b"1")
    journal.session_opened(session)
    with pytest.raises(ServiceUnavailableError) as unpromised:
        await journal.flush()
    assert unpromised.value.executed == "no"
    locked.execute("ROLLBACK")


async def test_toolset_of_a_session_is_stored(store: Store, journal: StoreJournal, session: Session) -> None:
    """The toolset of a session is stored, so that it applies after a restart."""
    session.toolset = "lean"
    journal.session_opened(session)
    await store.flush()
    stored = await journal.find_session(KEY)
    assert stored is not None
    assert stored.row.toolset == "lean"


async def test_unreadable_store_fails_session_lookup(store: Store, journal: StoreJournal, database: Path) -> None:
    """An unreadable store is an error, unlike a session that does not exist."""
    assert await journal.find_session(hash_key("made up")) is None
    await store.flush()
    with closing(sqlite3.connect(database, timeout=30, isolation_level=None)) as other:
        other.execute("ALTER TABLE session RENAME TO elsewhere")
        with pytest.raises(ServiceUnavailableError) as reported:
            await journal.find_session(KEY)
    assert (reported.value.executed, reported.value.retryable) == ("no", True)
