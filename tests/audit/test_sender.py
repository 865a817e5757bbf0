"""The sender, with a real store and a remote of the test's: order, retries, halves, the end."""

import asyncio
import json
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from toold.audit.remote import NotWrittenError
from toold.audit.sender import BATCH, Sender
from toold.audit.verdict import Failure, Verdict
from toold.store import CallRow, ChainedRow, Checkpoint, Retention, Settled, Store

Record = Callable[..., None]


class Table:
    """Takes calls as Supabase does; fails as told."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.sizes: list[int] = []
        self.failures: list[Exception] = []
        self.bad: set[str] = set()
        self.bad_checkpoints = False
        self.checkpoints: list[Checkpoint] = []
        self.closed = False

    async def write(self, rows: Sequence[ChainedRow]) -> None:
        self.sizes.append(len(rows))
        if self.failures:
            raise self.failures.pop(0)
        if self.bad & {row.call.id for row in rows}:
            raise failing("refused", "not this one")
        self.ids += [row.call.id for row in rows]

    async def write_checkpoints(self, checkpoints: Sequence[Checkpoint]) -> None:
        if self.bad_checkpoints:
            raise failing("refused", "no checkpoints")
        self.checkpoints += checkpoints

    async def close(self) -> None:
        self.closed = True


def failing(verdict: Verdict, reason: str = "words") -> NotWrittenError:
    return NotWrittenError(Failure(verdict, reason))


@pytest.fixture
def table() -> Table:
    return Table()


@pytest.fixture
async def store(tmp_path: Path, audit_key: bytes) -> AsyncIterator[Store]:
    store = Store(tmp_path / "toold.db", content=json.dumps, retention=Retention(days=20_000), key=audit_key)
    yield store
    await store.close()


@pytest.fixture
async def sender(store: Store, table: Table, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sender]:
    """A sender that has not started, and hardly pauses."""
    monkeypatch.setattr("toold.audit.sender.pause_s", lambda *_: 0.001)
    monkeypatch.setattr("toold.audit.sender.PACE_S", 0.001)
    monkeypatch.setattr("toold.audit.sender.LOOK_EVERY_S", 0.01)
    sender = Sender(store, lambda: table)
    yield sender
    await sender.close(30)


@pytest.fixture
def record(store: Store, row: Callable[..., CallRow]) -> Record:
    """A function that has calls recorded, by their ids."""

    def put(*ids: object) -> None:
        for name in ids:
            store.record(row(id=str(name), started_at=1_800_000_000.0))

    return put


async def until(reached: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not reached():
            await asyncio.sleep(0.005)


async def test_calls_go_in_order_in_batches(sender: Sender, store: Store, record: Record, table: Table) -> None:
    """What waited goes first, as many at once as a batch takes; what comes later goes by itself."""
    record(*range(BATCH + 50))
    await store.flush()
    sender.start()
    await until(lambda: len(table.ids) == BATCH + 50)
    record("later")
    await until(lambda: len(table.ids) == BATCH + 51)
    assert table.ids == [*map(str, range(BATCH + 50)), "later"]
    assert table.sizes == [BATCH, 50, 1]
    await until(lambda: sender.backlog == 0)


async def test_a_restart_goes_on_where_the_last_one_was(
    sender: Sender, store: Store, record: Record, table: Table
) -> None:
    """What was sent before is not sent again."""
    record(*"abc")
    await store.flush()
    store.settle(Settled(up_to=2, at=1.0, sent=2))
    await store.flush()
    sender.start()
    await until(lambda: table.ids)
    assert table.ids == ["c"]


@pytest.mark.parametrize("verdict", ["later", "setup"])
async def test_failures_lose_nothing(
    sender: Sender, store: Store, record: Record, table: Table, verdict: Verdict
) -> None:
    """The same calls are tried again, fewer at once each time; the log says it once, and once that it works again."""
    table.failures = [failing(verdict) for _ in range(4)]
    record(*range(150))
    await store.flush()
    with capture_logs() as lines:
        sender.start()
        await until(lambda: len(table.ids) == 150)
        await until(lambda: len(lines) == 2)
    assert table.ids == [str(number) for number in range(150)]
    assert table.sizes[:5] == [150, 100, 50, 25, 12]
    assert [line["log_level"] for line in lines] == ["warning", "info"]
    await store.flush()
    assert (await sender.status())["last_error"] is None


async def test_the_status_while_it_fails(sender: Sender, store: Store, record: Record, table: Table) -> None:
    """State, backlog and the last failure are told, and how often in a row it failed."""
    table.failures = [failing("later", "Supabase is down") for _ in range(100_000)]
    record(*"ab")
    sender.start()
    await until(lambda: len(table.failures) < 99_990)
    status = await sender.status()
    assert status["failures_in_a_row"] >= 9
    told = {key: status[key] for key in ("state", "backlog", "sent", "last_error", "last_sent_at")}
    assert told == {
        "state": "retrying",
        "backlog": 2,
        "sent": 0,
        "last_error": "Supabase is down",
        "last_sent_at": None,
    }


async def test_refused_calls_are_found_by_halves(sender: Sender, store: Store, record: Record, table: Table) -> None:
    """Each refused call is set aside with its reason, in few requests, and the others arrive in order."""
    table.bad = {"0", "77", "99"}
    record(*range(100))
    await store.flush()
    sender.start()
    await until(lambda: len(table.ids) == 97)
    assert table.ids == [str(number) for number in range(100) if str(number) not in table.bad]
    assert len(table.sizes) < 50
    await sender.close(30)
    await store.flush()
    outbox = await store.outbox()
    assert (outbox.sent, outbox.refused, outbox.backlog) == (97, 3, 0)


async def test_a_failure_between_halves_repeats_none_that_arrived(
    sender: Sender, store: Store, record: Record, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the server goes away in the middle of the search, what it took already is not sent again."""
    record(*"abcd")
    await store.flush()
    table.bad = {"d"}
    write = table.write

    async def goes_away(rows: Sequence[ChainedRow]) -> None:
        await write(rows)
        if table.ids == ["a", "b"]:
            table.failures = [failing("later")]

    monkeypatch.setattr(table, "write", goes_away)
    sender.start()
    await until(lambda: len(table.ids) == 3)
    assert table.ids == ["a", "b", "c"]


async def test_what_retention_removed_is_counted(
    store: Store, record: Record, sender: Sender, table: Table, tmp_path: Path
) -> None:
    """A gap in the numbers is calls that were removed before they could be sent."""
    record(*"abcde")
    await store.flush()
    store.settle(Settled(up_to=1, at=1.0, sent=1))
    await store.flush()
    connection = sqlite3.connect(tmp_path / "toold.db")
    with connection:
        connection.execute("DELETE FROM call WHERE id IN ('b', 'c')")
    connection.close()
    sender.start()
    await until(lambda: table.ids == ["d", "e"])
    await sender.close(30)
    await store.flush()
    outbox = await store.outbox()
    assert (outbox.sent, outbox.dropped, outbox.backlog) == (3, 2, 0)


async def test_the_unforeseen_does_not_end_it(sender: Sender, store: Store, record: Record, table: Table) -> None:
    """What nobody thought of is told without its words, logged, and tried again."""
    table.failures = [LookupError("/a/path/of/the/server")]
    record("a")
    with capture_logs() as lines:
        sender.start()
        await until(lambda: table.ids)
    assert [line["reason"] for line in lines if line["log_level"] == "warning"] == ["LookupError"]


async def test_closing_sends_the_rest(sender: Sender, store: Store, record: Record, table: Table) -> None:
    """What was recorded an instant before the end goes too, and the connections are closed."""
    sender.start()
    record(*range(2 * BATCH + 1))
    await sender.close(60)
    assert len(table.ids) == 2 * BATCH + 1
    assert table.closed


async def test_closing_tries_once(sender: Sender, store: Store, record: Record, table: Table) -> None:
    """A server that fails does not get a second chance at the end."""
    table.failures = [failing("later") for _ in range(100_000)]
    record("a")
    sender.start()
    await until(lambda: table.sizes)
    await sender.close(60)
    assert table.failures
    assert table.closed


async def test_closing_before_it_has_connected(store: Store, table: Table) -> None:
    """A slow import holds up no end longer than it may."""
    release = threading.Event()

    def connect() -> Table:
        release.wait(60)
        return table

    sender = Sender(store, connect)
    sender.start()
    await asyncio.sleep(0)
    await sender.close(0.05)
    release.set()


async def test_closing_what_never_started(store: Store, table: Table) -> None:
    """A daemon that could not listen closes a sender that has nothing to close."""
    await Sender(store, lambda: table).close(1)


async def test_a_missing_package_is_told(store: Store) -> None:
    """Without ``supabase`` nothing is sent, and the status says what to install."""

    def connect() -> Table:
        raise ModuleNotFoundError("No module named 'supabase'")

    sender = Sender(store, connect)
    with capture_logs() as lines:
        sender.start()
        await until(lambda: lines)
    status = await sender.status()
    assert status["state"] == "stopped"
    assert "pip install 'toold[audit]'" in status["last_error"]
    await sender.close(1)


async def test_a_package_that_fails_is_told(store: Store) -> None:
    """Whatever else keeps the client from being made is in the status, by its kind alone, and in the log."""

    def connect() -> Table:
        raise AttributeError("of a package that is not what it should be")

    sender = Sender(store, connect)
    with capture_logs() as lines:
        sender.start()
        await until(lambda: lines)
    status = await sender.status()
    assert (status["state"], status["last_error"]) == ("stopped", "AttributeError")
    await sender.close(1)


async def test_checkpoints_go_too(sender: Sender, store: Store, record: Record, table: Table) -> None:
    """What is noted of the chain is sent once, with the calls or without any, and again when it has changed."""
    sender.start()
    await until(lambda: [one.kind for one in table.checkpoints] == ["began"])
    table.bad = {"b", "c"}
    record(*"abc")
    await until(lambda: len(table.ids) == 1)
    record("d")
    await until(lambda: len(table.checkpoints) == 2)
    refused = table.checkpoints[1]
    assert (refused.kind, refused.first_seq, refused.calls) == ("refused", 2, 1 if refused.last_seq == 2 else 2)
    await sender.close(30)
    await store.flush()
    later = await store.unsent_checkpoints(10)
    assert all(one.number == refused.number and one.last_seq > refused.last_seq for one in later)


async def test_a_refused_checkpoint_holds_up_nothing(
    sender: Sender, store: Store, record: Record, table: Table
) -> None:
    """It stays here, the log says so, and calls go on."""
    table.bad_checkpoints = True
    with capture_logs() as lines:
        sender.start()
        record(*"ab")
        await until(lambda: table.ids == ["a", "b"])
        await until(lambda: lines)
    await sender.close(30)
    await store.flush()
    assert await store.unsent_checkpoints(10) == []
    assert (await store.outbox()).backlog == 0
