"""The store as the daemon uses it: rows are written, the last calls and the sums are read."""

import asyncio
import json
import sqlite3
import stat
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs
from toold.store import CallRow, Retention, Store, StoreError
from toold.store.sqlite import audit_sql, sqlite_reader
from toold.store.store_rows import ModelSums, Sums

Call = Any  # conftest.Journalled
MakeRow = Callable[..., CallRow]


@pytest.fixture
async def store(open_store: Callable[..., Store]) -> AsyncIterator[Store]:
    store = open_store()
    yield store
    await store.close()


async def test_recent_calls_are_read_back_unchanged(store: Store, row: MakeRow) -> None:
    """``recent`` returns complete rows, newest first, up to the requested number."""
    rows = [
        row(id="a", request_id="7", arguments={"text": "x"}),
        row(id="b", outcome="TIMEOUT", message="too late", executed="maybe"),
        row(
            id="c",
            provider="kimi",
            model="kimi-k2",
            simulated=True,
            input_tokens=3,
            cost_amount=0.5,
            cost_currency="USD",
        ),
    ]
    for one in rows:
        store.audit.record(one)
    await store.flush()
    assert await store.audit.recent(2) == [rows[2], rows[1]]
    assert await store.audit.recent(10) == rows[::-1]
    assert store.audit.rows_written == 3


async def test_cancelled_flush_does_not_affect_others(store: Store, row: MakeRow) -> None:
    """Cancelling a flush ends only that wait; the writer and other flushes continue."""
    for number in range(3):
        store.audit.record(row(id=str(number)))
        flushing = asyncio.create_task(store.flush())
        await asyncio.sleep(0)  # the flush waits for the writer
        flushing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await flushing
    await store.flush()
    assert (store.audit.rows_written, store.problem) == (3, None)


async def test_content_and_retention_can_change(store: Store, row: MakeRow) -> None:
    """New rows follow the new settings, and rows beyond the new retention are deleted."""
    store.audit.record(row(id="old", started_at=time.time() - 5 * 86_400, arguments="x"))
    await store.flush()
    store.apply(lambda _: '"kept otherwise"', Retention(days=3))
    store.audit.record(row(id="new", arguments="x"))
    await store.flush()
    assert [(item.id, item.arguments) for item in await store.audit.recent(5)] == [("new", "kept otherwise")]


async def test_result_ttl_can_change(store: Store, call: Call) -> None:
    """The new time to live applies to results at once."""
    store.sessions.open(call.session)
    await store.journal.persist_local_results([msgspec.structs.replace(call.local("1"), at=time.time() - 60)])
    store.apply(json.dumps, Retention(result_ttl_s=30.0))
    stored = await store.sessions.find_by_key_hash(b"key")
    assert stored
    assert stored.calls == []


async def test_empty_store_has_no_calls(store: Store) -> None:
    """Before the first call all sums are zero."""
    totals = await store.audit.totals()
    assert await store.audit.recent(5) == []
    assert (totals.since, totals.all, totals.by_tool, totals.by_model) == (None, Sums(), {}, [])


async def test_sums_are_grouped_by_tool_outcome_and_model(store: Store, row: MakeRow) -> None:
    """Sums are grouped by tool, outcome and model, cost by currency; simulated models are separate and free."""
    paid = {"tool": "chat", "provider": "kimi", "model": "k2", "input_tokens": 10, "output_tokens": 5}
    store.audit.record(row(**paid, cost_amount=0.25, cost_currency="USD", started_at=200.0))
    store.audit.record(row(**paid, cost_amount=0.25, cost_currency="USD", started_at=100.0, outcome="TIMEOUT"))
    await store.flush()
    store.audit.record(row(**paid, cost_amount=9.0, cost_currency="USD", simulated=True))
    store.audit.record(
        row(tool="chat", provider="glm", model="g", input_tokens=1, cost_amount=2.0, cost_currency="CNY")
    )
    store.audit.record(row(tool="no such tool", outcome="TOOL_NOT_FOUND"))
    await store.flush()
    totals = await store.audit.totals()
    assert totals.since == 100.0
    assert totals.all == Sums(calls=5, errors=2, input_tokens=31, output_tokens=15, cost={"USD": 0.5, "CNY": 2.0})
    assert totals.by_tool["chat"].calls == 4
    assert totals.by_tool["unknown"] == Sums(calls=1, errors=1)
    assert totals.by_outcome == {"ok": 3, "TIMEOUT": 1, "TOOL_NOT_FOUND": 1}
    assert totals.by_model == [
        ModelSums(provider="glm", model="g", simulated=False, calls=1, input_tokens=1, cost={"CNY": 2.0}),
        ModelSums(
            provider="kimi",
            model="k2",
            simulated=False,
            calls=2,
            errors=1,
            input_tokens=20,
            output_tokens=10,
            cost={"USD": 0.5},
        ),
        ModelSums(provider="kimi", model="k2", simulated=True, calls=1, input_tokens=10, output_tokens=5),
    ]


async def test_rows_and_sums_survive_a_restart(open_store: Callable[..., Store], row: MakeRow) -> None:
    """Closing writes the queued rows; the next store continues from them."""
    for number in range(2):
        store = open_store()
        store.audit.record(row(id=str(number)))
        await store.close()
    store = open_store()
    assert [item.id for item in await store.audit.recent(5)] == ["1", "0"]
    assert (await store.audit.totals()).all.calls == 2
    await store.close()


async def test_file_is_readable_by_its_owner_only(store: Store, row: MakeRow, database: Path) -> None:
    """The database and SQLite's additional files are readable by their owner only."""
    store.audit.record(row())
    await store.flush()
    files = sorted(database.parent.glob("toold.db*"))
    assert len(files) == 3
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


async def test_reading_does_not_wait_for_writers(store: Store, row: MakeRow, database: Path) -> None:
    """While another connection writes, reads return the committed rows."""
    store.audit.record(row())
    await store.flush()
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert len(await store.audit.recent(5)) == 1
        other.execute("ROLLBACK")


async def test_concurrent_reads_all_return(store: Store, row: MakeRow) -> None:
    """Concurrent reads all return."""
    store.audit.record(row())
    await store.flush()
    answers = await asyncio.gather(
        *(store.audit.recent(1) for _ in range(20)), *(store.audit.totals() for _ in range(20))
    )
    assert len(answers) == 40


async def test_damaged_file_fails_reads(store: Store, database: Path) -> None:
    """A database that cannot be read raises the store's own error."""
    with closing(sqlite3.connect(database)) as other:
        other.execute("DROP TABLE call_total")
    with pytest.raises(StoreError, match="cannot be read"):
        await store.audit.totals()


async def test_session_is_found_with_earlier_writes(store: Store, call: Call) -> None:
    """A session is found with all earlier writes, awaited or not."""
    store.sessions.open(call.session)
    assert await store.journal.start(call.starts("1"))
    assert not await store.journal.start(call.starts("1"))
    await store.journal.end(call.ends("1", b"[1]"))
    await store.journal.persist_local_results([call.local("2")])
    store.sessions.acknowledge("s-1", ["2"])
    stored = await store.sessions.find_by_key_hash(b"key")
    assert stored
    assert stored.row.opened_at == pytest.approx(call.session.opened_at, abs=1)
    assert msgspec.structs.replace(stored.row, opened_at=call.session.opened_at) == call.session
    assert [(call.request_key, call.state, call.result) for call in stored.calls] == [("1", "done", b"[1]")]
    assert [row.id for row in await store.audit.recent(5)] == ["call-1"]
    store.sessions.close("s-1")
    assert await store.sessions.find_by_key_hash(b"key") is None


async def test_found_session_counts_as_seen(store: Store, call: Call, database: Path) -> None:
    """Finding a session updates its seen time, so that retention keeps it."""
    store.sessions.open(msgspec.structs.replace(call.session, opened_at=time.time() - 3600))
    before = time.time()
    assert await store.sessions.find_by_key_hash(b"key")
    await store.flush()
    with closing(sqlite3.connect(database)) as other:
        ((seen_at,),) = other.execute("SELECT seen_at FROM session").fetchall()
    assert seen_at >= before


async def test_sessions_and_results_survive_a_restart(open_store: Callable[..., Store], call: Call) -> None:
    """The next store has the results, including local ones, and marks calls that ran at the end as interrupted."""
    store = open_store()
    store.sessions.open(call.session)
    for key in "12":
        assert await store.journal.start(call.starts(key))
    await store.journal.end(call.ends("1", b"[1]"))
    await store.journal.persist_local_results([call.local("3", b"[3]")])
    await store.close()
    store = open_store()
    stored = await store.sessions.find_by_key_hash(b"key")
    assert stored
    assert {call.request_key: (call.state, call.result) for call in stored.calls} == {
        "1": ("done", b"[1]"),
        "2": ("interrupted", None),
        "3": ("done", b"[3]"),
    }
    assert {row.id: row.outcome for row in await store.audit.recent(5)} == {"call-1": "ok", "call-2": "OUTCOME_UNKNOWN"}
    await store.close()


async def test_results_have_a_ttl(open_store: Callable[..., Store], call: Call) -> None:
    """Expired results are not returned even before retention deletes them; local calls are then unknown."""
    store = open_store(retention=Retention(result_ttl_s=3600.0))
    store.sessions.open(call.session)
    assert await store.journal.start(call.starts("1"))
    await store.journal.end(msgspec.structs.replace(call.ends("1"), at=time.time() - 3601))
    await store.journal.persist_local_results([msgspec.structs.replace(call.local("2"), at=time.time() - 3601)])
    stored = await store.sessions.find_by_key_hash(b"key")
    assert stored
    assert [(call.request_key, call.state, call.result) for call in stored.calls] == [("1", "expired", None)]
    await store.close()


async def test_results_have_a_size_limit(open_store: Callable[..., Store], call: Call) -> None:
    """Beyond a principal's limit, a new result deletes the oldest."""
    store = open_store(retention=Retention(results_bytes=5))
    store.sessions.open(call.session)
    for key in "12":
        assert await store.journal.start(call.starts(key))
        await store.journal.end(call.ends(key, b"123"))
    stored = await store.sessions.find_by_key_hash(b"key")
    assert stored
    assert [(call.request_key, call.state) for call in stored.calls] == [("1", "expired"), ("2", "done")]
    await store.close()


async def test_cancelled_wait_for_a_start_does_not_undo_it(store: Store, call: Call) -> None:
    """A cancelled wait for a start still writes the start, and the call can end."""
    store.sessions.open(call.session)
    starting = asyncio.create_task(store.journal.start(call.starts("1")))
    await asyncio.sleep(0)  # the start waits for the writer
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await store.journal.end(call.ends("1"))
    stored = await store.sessions.find_by_key_hash(b"key")
    assert stored
    assert [(call.request_key, call.state) for call in stored.calls] == [("1", "done")]


async def test_concurrent_calls_are_written_once(store: Store, call: Call) -> None:
    """Each of many concurrent calls is written once."""

    async def one(key: str) -> None:
        assert await store.journal.start(call.starts(key))
        await store.journal.end(call.ends(key, key.encode()))

    store.sessions.open(call.session)
    await asyncio.gather(*(one(str(number)) for number in range(300)))
    stored = await store.sessions.find_by_key_hash(b"key")
    assert stored
    assert {call.request_key: call.result for call in stored.calls} == {str(n): str(n).encode() for n in range(300)}
    assert store.audit.rows_written == (await store.audit.totals()).all.calls == 300


async def test_retention_by_age(open_store: Callable[..., Store], row: MakeRow) -> None:
    """At the start, rows older than the limit are deleted in slices; newer rows and the sums stay."""
    store = open_store(retention=Retention(days=100_000))
    for number in range(1200):
        store.audit.record(row(id=str(number), started_at=1e9))
    store.audit.record(row(id="young"))
    await store.close()
    store = open_store(retention=Retention(days=30))
    for _ in range(3):  # 500 rows per slice
        await store.flush()
    assert [item.id for item in await store.audit.recent(5000)] == ["young"]
    assert (await store.audit.totals()).all.calls == 1201
    await store.close()


async def test_retention_by_size(open_store: Callable[..., Store], row: MakeRow, database: Path) -> None:
    """A database over its size limit loses its oldest rows, and the file shrinks."""
    store = open_store()
    for number in range(2000):
        store.audit.record(row(id=str(number), message="m" * 500))
    await store.close()
    before = database.stat().st_size
    store = open_store(retention=Retention(bytes=before // 2))
    for _ in range(4):
        await store.flush()
    ids = [int(item.id) for item in await store.audit.recent(5000)]
    assert 0 < len(ids) < 1500
    assert ids == list(range(1999, 1999 - len(ids), -1))
    await store.close()
    assert database.stat().st_size < before * 0.8


async def test_hanging_read_does_not_delay_close(
    open_store: Callable[..., Store], row: MakeRow, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing writes the queued rows, abandons the hanging read and logs it."""
    reached, release = threading.Event(), threading.Event()

    def hangs(*_: object) -> list[CallRow]:
        reached.set()
        assert release.wait(60)
        return []

    monkeypatch.setattr(audit_sql, "recent", hangs)
    monkeypatch.setattr(sqlite_reader, "READER_TIMEOUT_S", 0.01)
    store = open_store()
    reading = asyncio.create_task(store.audit.recent(1))
    assert await asyncio.to_thread(reached.wait, 30)
    store.audit.record(row(id="last"))
    try:
        with capture_logs() as lines:
            await asyncio.wait_for(store.close(), 20)
    finally:
        release.set()
    assert [line["log_level"] for line in lines] == ["warning"]
    assert await reading == []
    with closing(sqlite3.connect(database)) as other:
        assert other.execute("SELECT id FROM call").fetchall() == [("last",)]


async def test_clean_close_leaves_one_file(open_store: Callable[..., Store], row: MakeRow, database: Path) -> None:
    """After a clean close the database is one file, so that copying it is a backup."""
    store = open_store()
    store.audit.record(row())
    await store.flush()
    await store.audit.recent(1)
    await store.close()
    assert list(database.parent.iterdir()) == [database]


async def test_damaged_page_is_reported_once(
    open_store: Callable[..., Store], database: Path, call: Call, damage: Callable[[Path, str], None]
) -> None:
    """The log and ``damage`` report a damaged page with a remedy; reads of other pages succeed."""
    store = open_store()
    store.sessions.open(call.session)
    await store.close()
    damage(database, "session")
    with capture_logs() as lines:
        store = open_store()
        assert store.damage is None
        for _ in range(3):
            with pytest.raises(StoreError, match="malformed"):
                await store.sessions.find_by_key_hash(b"key")
        assert await store.audit.recent(10) == []
        assert "restore an intact backup" in str(store.damage)
        await store.close()
    reported = [line for line in lines if line["event"] == "the database is damaged"]
    assert [(line["log_level"], line["path"], "restore an intact" in line["remedy"]) for line in reported] == [
        ("error", str(database), True)
    ]


async def test_write_to_a_damaged_page_is_reported_once(
    open_store: Callable[..., Store], database: Path, call: Call, damage: Callable[[Path, str], None]
) -> None:
    """Calls that cannot be journalled are refused, and the log has the reason and a remedy."""
    store = open_store()
    await store.close()
    damage(database, "template")
    with capture_logs() as lines:
        store = open_store()
        for key in "12":
            with pytest.raises(StoreError, match="malformed"):
                await store.journal.start(call.starts(key))
        assert "malformed" in str(store.problem)
        await store.close()
    assert [("restore an intact backup" in line["reason"]) for line in lines if "writes fail" in line["event"]] == [
        True
    ]
