"""A lane, with a real store and a remote of the test's: order, retries, halves, the end."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.waiting import until
from toold.audit.delivery_failure import Verdict
from toold.audit.outbox_batches import CallBatches
from toold.audit.outbox_sender import BATCH, OutboxSender
from toold.store import ChainedRow, SettledCalls, Store

from .conftest import failing

CallLane = OutboxSender[ChainedRow]
Record = Callable[..., None]


async def test_calls_are_sent_in_order_in_batches(lane: CallLane, store: Store, record: Record, table: Any) -> None:
    """What waited goes first, as many at once as a batch takes; what comes later goes by itself."""
    record(*range(BATCH + 50))
    await store.flush()
    lane.start()
    await until(lambda: len(table.ids) == BATCH + 50)
    record("later")
    await until(lambda: len(table.ids) == BATCH + 51)
    assert table.ids == [*map(str, range(BATCH + 50)), "later"]
    assert table.sizes == [BATCH, 50, 1]
    await store.flush()
    assert (await lane.status())["backlog"] == 0


async def test_restart_continues_after_the_last_sent_call(
    lane: CallLane, store: Store, record: Record, table: Any
) -> None:
    """What was sent before is not sent again."""
    record(*"abc")
    await store.flush()
    store.audit.settle(SettledCalls(up_to=2, at=1.0, sent=2))
    await store.flush()
    lane.start()
    await until(lambda: table.ids)
    assert table.ids == ["c"]


@pytest.mark.parametrize("verdict", ["later", "setup"])
async def test_failures_lose_nothing(
    lane: CallLane, store: Store, record: Record, table: Any, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same calls are tried again, fewer at once each time, after pauses that are drawn anew; the log says it once,
    and once that it works again.
    """
    pauses: list[tuple[int, float]] = []

    def note(failures: int, chance: float) -> float:
        pauses.append((failures, chance))
        return 0.001

    monkeypatch.setattr("toold.audit.outbox_sender.pause_s", note)
    table.failures = [failing(verdict) for _ in range(4)]
    record(*range(150))
    await store.flush()
    with capture_logs() as lines:
        lane.start()
        await until(lambda: len(table.ids) == 150)
        await until(lambda: len(lines) == 2)
    assert table.ids == [str(number) for number in range(150)]
    assert table.sizes[:5] == [150, 100, 50, 25, 12]
    assert [failures for failures, _ in pauses] == [1, 2, 3, 4]
    assert len({chance for _, chance in pauses}) == 4
    assert [line["log_level"] for line in lines] == ["warning", "info"]
    await store.flush()
    assert (await lane.status())["last_error"] is None


async def test_the_status_while_it_fails(lane: CallLane, store: Store, record: Record, table: Any) -> None:
    """State, backlog and the last failure are told, and how often in a row it failed."""
    table.failures = [failing("later", "Supabase is down") for _ in range(100_000)]
    record(*"ab")
    lane.start()
    await until(lambda: len(table.failures) < 99_990)
    status = await lane.status()
    assert status["failures_in_a_row"] >= 9
    told = {key: status[key] for key in ("state", "backlog", "sent", "last_error", "last_sent_at")}
    assert told == {
        "state": "retrying",
        "backlog": 2,
        "sent": 0,
        "last_error": "Supabase is down",
        "last_sent_at": None,
    }


async def test_refused_calls_are_found_by_bisection(lane: CallLane, store: Store, record: Record, table: Any) -> None:
    """Each refused call is set aside with its reason, in few requests, and the others arrive in order."""
    table.bad = {"0", "77", "99"}
    record(*range(100))
    await store.flush()
    lane.start()
    await until(lambda: len(table.ids) == 97)
    assert table.ids == [str(number) for number in range(100) if str(number) not in table.bad]
    assert len(table.sizes) < 50
    await lane.close(30)
    await store.flush()
    outbox = await store.audit.outbox_state()
    assert (outbox.sent, outbox.refused, outbox.backlog) == (97, 3, 0)


async def test_failure_during_bisection_does_not_resend_sent_calls(
    lane: CallLane, store: Store, record: Record, table: Any, monkeypatch: pytest.MonkeyPatch
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
    lane.start()
    await until(lambda: len(table.ids) == 3)
    assert table.ids == ["a", "b", "c"]


async def test_unexpected_error_does_not_end_the_sender(
    lane: CallLane, store: Store, record: Record, table: Any
) -> None:
    """What nobody thought of is told without its words, logged, and tried again."""
    table.failures = [LookupError("/a/path/of/the/server")]
    record("a")
    with capture_logs() as lines:
        lane.start()
        await until(lambda: table.ids)
    assert [line["reason"] for line in lines if line["log_level"] == "warning"] == ["LookupError"]


async def test_close_sends_the_backlog(lane: CallLane, store: Store, record: Record, table: Any) -> None:
    """What was recorded an instant before the end goes too, and the connections are closed."""
    lane.start()
    record(*range(2 * BATCH + 1))
    await lane.close(60)
    assert len(table.ids) == 2 * BATCH + 1
    assert table.closed


async def test_close_tries_once(lane: CallLane, store: Store, record: Record, table: Any) -> None:
    """A server that fails does not get a second chance at the end."""
    table.failures = [failing("later") for _ in range(100_000)]
    record("a")
    lane.start()
    await until(lambda: table.sizes)
    await lane.close(60)
    assert table.failures
    assert table.closed


async def test_close_before_connecting(store: Store, table: Any) -> None:
    """A slow import holds up no end longer than it may."""
    release = threading.Event()

    def connect() -> Any:
        release.wait(60)
        return table

    lane = OutboxSender(store, CallBatches(store), connect)
    lane.start()
    await asyncio.sleep(0)
    await lane.close(0.05)
    release.set()


async def test_close_without_start(store: Store, table: Any) -> None:
    """A daemon that could not listen closes a lane that has nothing to close."""
    await OutboxSender(store, CallBatches(store), lambda: table).close(1)


async def test_missing_package_is_reported(store: Store) -> None:
    """Without ``supabase`` nothing is sent, and the status says what to install."""

    def connect() -> Any:
        raise ModuleNotFoundError("No module named 'supabase'")

    lane = OutboxSender(store, CallBatches(store), connect)
    with capture_logs() as lines:
        lane.start()
        await until(lambda: lines)
    status = await lane.status()
    assert status["state"] == "stopped"
    assert "pip install 'toold[audit]'" in status["last_error"]
    await lane.close(1)


async def test_failing_package_is_reported(store: Store) -> None:
    """Whatever else keeps the client from being made is in the status, by its kind alone, and in the log."""

    def connect() -> Any:
        raise AttributeError("of a package that is not what it should be")

    lane = OutboxSender(store, CallBatches(store), connect)
    with capture_logs() as lines:
        lane.start()
        await until(lambda: lines)
    status = await lane.status()
    assert (status["state"], status["last_error"]) == ("stopped", "AttributeError")
    await lane.close(1)
