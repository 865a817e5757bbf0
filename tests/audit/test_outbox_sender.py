"""An outbox sender with a real store and a stand-in for Supabase: order, retries, bisection and closing."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.waiting import until
from toold.audit.delivery_failure import FailureKind
from toold.audit.outbox_batches import CallBatches
from toold.audit.outbox_sender import BATCH, OutboxSender
from toold.store import ChainedRow, SettledCalls, Store

from .conftest import failing

CallSender = OutboxSender[ChainedRow]
Record = Callable[..., None]


async def test_calls_are_sent_in_order_in_batches(
    outbox_sender: CallSender, store: Store, record: Record, table: Any
) -> None:
    """The backlog is sent first, in full batches; later calls are sent without a trigger."""
    record(*range(BATCH + 50))
    await store.flush()
    outbox_sender.start()
    await until(lambda: len(table.ids) == BATCH + 50)
    record("later")
    await until(lambda: len(table.ids) == BATCH + 51)
    assert table.ids == [*map(str, range(BATCH + 50)), "later"]
    assert table.sizes == [BATCH, 50, 1]
    await store.flush()
    assert (await outbox_sender.status())["backlog"] == 0


async def test_restart_continues_after_the_last_sent_call(
    outbox_sender: CallSender, store: Store, record: Record, table: Any
) -> None:
    """Calls that were sent before a restart are not sent again."""
    record(*"abc")
    await store.flush()
    store.audit.settle(SettledCalls(up_to=2, at=1.0, sent=2))
    await store.flush()
    outbox_sender.start()
    await until(lambda: table.ids)
    assert table.ids == ["c"]


@pytest.mark.parametrize("failure_kind", ["later", "setup"])
async def test_failures_lose_nothing(
    outbox_sender: CallSender,
    store: Store,
    record: Record,
    table: Any,
    failure_kind: FailureKind,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Failed calls are retried in smaller batches after random pauses; the log reports the first failure and the
    recovery."""
    pauses: list[tuple[int, float]] = []

    def note(failures: int, chance: float) -> float:
        pauses.append((failures, chance))
        return 0.001

    monkeypatch.setattr("toold.audit.outbox_sender.pause_s", note)
    table.failures = [failing(failure_kind) for _ in range(4)]
    record(*range(150))
    await store.flush()
    with capture_logs() as lines:
        outbox_sender.start()
        await until(lambda: len(table.ids) == 150)
        await until(lambda: len(lines) == 2)
    assert table.ids == [str(number) for number in range(150)]
    assert table.sizes[:5] == [150, 100, 50, 25, 12]
    assert [failures for failures, _ in pauses] == [1, 2, 3, 4]
    assert len({chance for _, chance in pauses}) == 4
    assert [line["log_level"] for line in lines] == ["warning", "info"]
    await store.flush()
    assert (await outbox_sender.status())["last_error"] is None


async def test_status_reports_failures(outbox_sender: CallSender, store: Store, record: Record, table: Any) -> None:
    """The status has the state, the backlog, the last failure and the number of failures in a row."""
    table.failures = [failing("later", "Supabase is down") for _ in range(100_000)]
    record(*"ab")
    outbox_sender.start()
    await until(lambda: len(table.failures) < 99_990)
    status = await outbox_sender.status()
    assert status["failures_in_a_row"] >= 9
    reported = {key: status[key] for key in ("state", "backlog", "sent", "last_error", "last_sent_at")}
    assert reported == {
        "state": "retrying",
        "backlog": 2,
        "sent": 0,
        "last_error": "Supabase is down",
        "last_sent_at": None,
    }


async def test_refused_calls_are_found_by_bisection(
    outbox_sender: CallSender, store: Store, record: Record, table: Any
) -> None:
    """Refused calls are found in few requests and stored with their reason; the others arrive in order."""
    table.bad = {"0", "77", "99"}
    record(*range(100))
    await store.flush()
    outbox_sender.start()
    await until(lambda: len(table.ids) == 97)
    assert table.ids == [str(number) for number in range(100) if str(number) not in table.bad]
    assert len(table.sizes) < 50
    await outbox_sender.close(30)
    await store.flush()
    outbox = await store.audit.outbox_state()
    assert (outbox.sent, outbox.refused, outbox.backlog) == (97, 3, 0)


async def test_failure_during_bisection_does_not_resend_sent_calls(
    outbox_sender: CallSender, store: Store, record: Record, table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the server fails during a bisection, calls that it accepted are not sent again."""
    record(*"abcd")
    await store.flush()
    table.bad = {"d"}
    write = table.write

    async def goes_away(rows: Sequence[ChainedRow]) -> None:
        await write(rows)
        if table.ids == ["a", "b"]:
            table.failures = [failing("later")]

    monkeypatch.setattr(table, "write", goes_away)
    outbox_sender.start()
    await until(lambda: len(table.ids) == 3)
    assert table.ids == ["a", "b", "c"]


async def test_unexpected_error_does_not_end_the_sender(
    outbox_sender: CallSender, store: Store, record: Record, table: Any
) -> None:
    """An unexpected error is reported by its type only, logged and retried."""
    table.failures = [LookupError("/a/path/of/the/server")]
    record("a")
    with capture_logs() as lines:
        outbox_sender.start()
        await until(lambda: table.ids)
    assert [line["reason"] for line in lines if line["log_level"] == "warning"] == ["LookupError"]


async def test_close_sends_the_backlog(outbox_sender: CallSender, store: Store, record: Record, table: Any) -> None:
    """Closing sends the calls recorded just before and closes the connections."""
    outbox_sender.start()
    record(*range(2 * BATCH + 1))
    await outbox_sender.close(60)
    assert len(table.ids) == 2 * BATCH + 1
    assert table.closed


async def test_close_tries_once(outbox_sender: CallSender, store: Store, record: Record, table: Any) -> None:
    """Closing does not retry after a failure."""
    table.failures = [failing("later") for _ in range(100_000)]
    record("a")
    outbox_sender.start()
    await until(lambda: table.sizes)
    await outbox_sender.close(60)
    assert table.failures
    assert table.closed


async def test_close_before_connecting(store: Store, table: Any) -> None:
    """A slow import does not delay closing beyond its limit."""
    release = threading.Event()

    def connect() -> Any:
        release.wait(60)
        return table

    outbox_sender = OutboxSender(store, CallBatches(store), connect)
    outbox_sender.start()
    await asyncio.sleep(0)
    await outbox_sender.close(0.05)
    release.set()


async def test_close_without_start(store: Store, table: Any) -> None:
    """Closing a sender that was never started does nothing."""
    await OutboxSender(store, CallBatches(store), lambda: table).close(1)


async def test_missing_package_is_reported(store: Store) -> None:
    """Without the package ``postgrest`` no call is sent, and the status names the package to install."""

    def connect() -> Any:
        raise ModuleNotFoundError("No module named 'postgrest'")

    outbox_sender = OutboxSender(store, CallBatches(store), connect)
    with capture_logs() as lines:
        outbox_sender.start()
        await until(lambda: lines)
    status = await outbox_sender.status()
    assert status["state"] == "stopped"
    assert "pip install '.[audit]'" in status["last_error"]
    await outbox_sender.close(1)


async def test_failing_package_is_reported(store: Store) -> None:
    """If the client cannot be created, the status has the type of the error, and the log has the error."""

    def connect() -> Any:
        raise AttributeError("of a package that is not what it should be")

    outbox_sender = OutboxSender(store, CallBatches(store), connect)
    with capture_logs() as lines:
        outbox_sender.start()
        await until(lambda: lines)
    status = await outbox_sender.status()
    assert (status["state"], status["last_error"]) == ("stopped", "AttributeError")
    await outbox_sender.close(1)
