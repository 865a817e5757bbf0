"""The outbox senders send calls with their checkpoints, and copies, once each; refused ones are skipped and counted."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.waiting import until
from toold.audit.outbox_batches import MAX_COPIED_BYTES, ConversationBatches
from toold.audit.outbox_sender import OutboxSender
from toold.store import ChainedRow, ConversationCopy, SettledCalls, Store

CallSender = OutboxSender[ChainedRow]
CopySender = OutboxSender[ConversationCopy]
Record = Callable[..., None]
Say = Callable[..., Awaitable[None]]


@pytest.fixture
async def copying(store: Store, table: Any, no_retry_delay: None) -> AsyncIterator[CopySender]:
    """A sender for copies that has not started."""
    outbox_sender = OutboxSender(store, ConversationBatches(store), lambda: table)
    yield outbox_sender
    await outbox_sender.close(30)


async def test_rows_deleted_by_retention_count_as_dropped(
    store: Store, record: Record, outbox_sender: CallSender, table: Any, tmp_path: Path
) -> None:
    """Calls that retention deletes before they are sent count as dropped."""
    record(*"abcde")
    await store.flush()
    store.audit.settle(SettledCalls(up_to=1, at=1.0, sent=1))
    await store.flush()
    connection = sqlite3.connect(tmp_path / "toold.db")
    with connection:
        connection.execute("DELETE FROM call WHERE id IN ('b', 'c')")
    connection.close()
    outbox_sender.start()
    await until(lambda: table.ids == ["d", "e"])
    await outbox_sender.close(30)
    await store.flush()
    outbox = await store.audit.outbox_state()
    assert (outbox.sent, outbox.dropped, outbox.backlog) == (3, 2, 0)


async def test_checkpoints_are_sent(outbox_sender: CallSender, store: Store, record: Record, table: Any) -> None:
    """Each checkpoint is sent once, with or without calls, and again after it was extended."""
    outbox_sender.start()
    await until(lambda: [checkpoint.kind for checkpoint in table.checkpoints] == ["began"])
    table.bad = {"b", "c"}
    record(*"abc")
    await until(lambda: len(table.sizes) == 5)  # the batch, its halves, and the halves of one half
    await store.flush()
    record("d")
    await until(lambda: table.checkpoints[-1].last_seq == 3)
    await outbox_sender.close(30)
    _, *refused = table.checkpoints
    assert {(item.kind, item.number, item.first_seq) for item in refused} == {("refused", 2, 2)}
    assert [item.calls for item in refused] in ([2], [1, 2])  # each version is sent once
    await store.flush()
    assert await store.audit.unsent_checkpoints(10) == []


async def test_refused_checkpoint_does_not_delay_calls(
    outbox_sender: CallSender, store: Store, record: Record, table: Any
) -> None:
    """A refused checkpoint is logged and not sent again; calls are still sent."""
    table.bad_checkpoints = True
    with capture_logs() as lines:
        outbox_sender.start()
        record(*"ab")
        await until(lambda: table.ids == ["a", "b"])
        await until(lambda: lines)
    await outbox_sender.close(30)
    await store.flush()
    assert await store.audit.unsent_checkpoints(10) == []
    assert (await store.audit.outbox_state()).backlog == 0


async def test_copies_are_sent_once_and_deleted(copying: CopySender, store: Store, say: Say, table: Any) -> None:
    """Copies are sent in order, deleted after sending, and not sent again by the next daemon."""
    for number in (1, 2, 3):
        await say("c-1", number)
    copying.start()
    await until(lambda: len(table.copies) == 3)
    await say("c-2", 1)
    await until(lambda: len(table.copies) == 4)
    assert table.copies == ["c-1-1", "c-1-2", "c-1-3", "c-2-1"]
    await copying.close(30)
    await store.flush()
    assert await store.conversations.unsent_copies(0, 10, 10**6) == []
    status = await copying.status()
    assert (status["sent"], status["backlog"], status["last_error"]) == (4, 0, None)


async def test_refused_copy_does_not_delay_others(copying: CopySender, store: Store, say: Say, table: Any) -> None:
    """A refused copy is counted, logged and not sent again; the others are sent."""
    table.bad_copies = {"c-1-2"}
    for number in (1, 2, 3):
        await say("c-1", number)
    with capture_logs() as lines:
        copying.start()
        await until(lambda: len(table.copies) == 2)
    await copying.close(30)
    await store.flush()
    assert [(line["id"], line["reason"]) for line in lines if "id" in line] == [("c-1-2", "not this one")]
    status = await copying.status()
    assert (status["sent"], status["refused"], status["backlog"]) == (2, 1, 0)
    assert await store.conversations.unsent_copies(0, 10, 10**6) == []


async def test_long_messages_are_sent_in_small_batches(copying: CopySender, store: Store, say: Say, table: Any) -> None:
    """The bytes of one batch are limited; a longer message is sent alone."""
    sizes: list[int] = []
    write = table.write_copies

    async def noting(copies: Any) -> None:
        sizes.append(len(copies))
        await write(copies)

    table.write_copies = noting
    half = "x" * (MAX_COPIED_BYTES // 2 - 1000)
    for number, text in enumerate((half, half, half, "y" * MAX_COPIED_BYTES, "z"), 1):
        await say("c-1", number, text)
    copying.start()
    await until(lambda: len(table.copies) == 5)
    assert sizes == [2, 1, 1, 1]


async def test_no_copies_are_sent_while_copying_is_disabled(
    copying: CopySender, store: Store, say: Say, table: Any
) -> None:
    """While copying is disabled the copies wait and the status reports it; when it is enabled again they are sent."""
    await say("c-1", 1)
    store.conversations.copy_enabled = False
    copying.start()
    await say("c-1", 2)
    await until(lambda: copying._state == "idle")
    status = await copying.status()
    assert (table.copies, status["state"], status["backlog"]) == ([], "off", 2)
    store.conversations.copy_enabled = True
    await until(lambda: len(table.copies) == 2)
