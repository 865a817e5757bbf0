"""A store, and a local stand-in for Supabase that receives its rows."""

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from toold.audit.delivery_failure import DeliveryFailure, FailureKind
from toold.audit.outbox_batches import CallBatches
from toold.audit.outbox_sender import OutboxSender
from toold.audit.supabase_writer import SupabaseWriteError
from toold.store import (
    CallRow,
    ChainedRow,
    Checkpoint,
    ConversationCopy,
    ConversationUpdate,
    NewCopy,
    Retention,
    Store,
    StoredTurn,
    open_sqlite_store,
)


class Table:
    """Receives rows as Supabase does and fails as the test configures it."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.sizes: list[int] = []
        self.failures: list[Exception] = []
        self.bad: set[str] = set()
        self.bad_checkpoints = False
        self.checkpoints: list[Checkpoint] = []
        self.copies: list[str] = []
        self.bad_copies: set[str] = set()
        self.no_copies = False
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

    async def write_copies(self, copies: Sequence[ConversationCopy]) -> None:
        if self.bad_copies & {copy.id for copy in copies}:
            raise failing("refused", "not this one")
        if self.no_copies:
            raise failing("setup", "there is no such table")
        self.copies += [copy.id for copy in copies]

    async def close(self) -> None:
        self.closed = True


def failing(failure_kind: FailureKind, reason: str = "words") -> SupabaseWriteError:
    return SupabaseWriteError(DeliveryFailure(failure_kind, reason))


@pytest.fixture
def table() -> Table:
    return Table()


@pytest.fixture
async def store(tmp_path: Path, audit_key: bytes) -> AsyncIterator[Store]:
    store = open_sqlite_store(
        tmp_path / "toold.db",
        content=json.dumps,
        retention=Retention(days=20_000),
        key=audit_key,
        copy_conversations=True,
    )
    yield store
    await store.close()


@pytest.fixture
def no_retry_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failed requests to Supabase are retried at once."""
    monkeypatch.setattr("toold.audit.outbox_sender.pause_s", lambda *_: 0.001)
    monkeypatch.setattr("toold.audit.outbox_sender.PACE_S", 0.001)
    monkeypatch.setattr("toold.audit.outbox_sender.SEARCH_PACE_S", 0.001)
    monkeypatch.setattr("toold.audit.outbox_sender.POLL_INTERVAL_S", 0.01)


@pytest.fixture
def record(store: Store, row: Callable[..., CallRow]) -> Callable[..., None]:
    """A function that records calls with the given ids."""

    def put(*ids: object) -> None:
        for name in ids:
            store.audit.record(row(id=str(name), started_at=1_800_000_000.0))

    return put


@pytest.fixture
def say(store: Store) -> Callable[..., Awaitable[None]]:
    """A function that adds a numbered message to a conversation."""

    async def add_message(conversation_id: str, number: int, text: str = "Hello") -> None:
        await store.conversations.update(
            ConversationUpdate(
                id=conversation_id,
                principal="local",
                at=time.time(),
                state="null",
                bytes=10,
                first_number=1,
                last_number=number,
                turns=[StoredTurn(number, 5, "{}")],
                session_id="s-1",
                call_id=f"call-{number}",
                copies=[NewCopy(number=number, role="user", content={"text": text}, at=time.time())],
            )
        )

    return add_message


@pytest.fixture
async def outbox_sender(store: Store, table: Any, no_retry_delay: None) -> AsyncIterator[OutboxSender[ChainedRow]]:
    """An outbox sender for calls that has not started."""
    outbox_sender = OutboxSender(store, CallBatches(store), lambda: table)
    yield outbox_sender
    await outbox_sender.close(30)
