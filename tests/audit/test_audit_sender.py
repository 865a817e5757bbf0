"""The audit sender: calls and copies are sent independently."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from tests.waiting import until
from toold.audit import AuditSender
from toold.store import Store


@pytest.fixture
async def sender(store: Store, table: Any, no_retry_delay: None) -> AsyncIterator[AuditSender]:
    """A sender that has not started."""
    sender = AuditSender(store, lambda: table)
    yield sender
    await sender.close(30)


async def test_calls_and_copies_are_sent(
    sender: AuditSender, store: Store, record: Callable[..., None], say: Callable[..., Awaitable[None]], table: Any
) -> None:
    """Calls and copies are sent until the sender closes; the backlog is the number of unsent calls."""
    record("a")
    await say("c-1", 1)
    await store.flush()
    assert sender.backlog == 1
    sender.start()
    await until(lambda: table.ids and table.copies)
    await until(lambda: sender.backlog == 0)
    record("b")
    await say("c-1", 2)
    await sender.close(30)
    assert (table.ids, table.copies, table.closed) == (["a", "b"], ["c-1-1", "c-1-2"], True)
    await store.flush()
    status = await sender.status()
    assert (status["sent"], status["copies"]["sent"]) == (2, 2)


async def test_failing_copies_do_not_delay_calls(
    sender: AuditSender, store: Store, record: Callable[..., None], say: Callable[..., Awaitable[None]], table: Any
) -> None:
    """If the project has no tables for copies, calls are still sent, and the status reports the failure of the
    copies only."""
    table.no_copies = True
    await say("c-1", 1)
    sender.start()
    async with asyncio.timeout(60):
        while not (await sender.status())["copies"]["last_error"]:
            await asyncio.sleep(0.005)
    record(*range(500))
    await until(lambda: len(table.ids) == 500)
    status = await sender.status()
    assert status["last_error"] is None
    assert (status["copies"]["state"], status["copies"]["backlog"]) == ("retrying", 1)
    table.no_copies = False
    await until(lambda: table.copies == ["c-1-1"])


async def test_close_without_start(sender: AuditSender) -> None:
    """Closing a sender that was never started does nothing."""
    await sender.close(1)
