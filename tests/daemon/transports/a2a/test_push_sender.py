"""Which notifications are sent when, with the SQL of the store."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from toold.daemon.transports.a2a.push_secrets import KEY_BYTES, PushSecrets
from toold.daemon.transports.a2a.push_sender import PushSender
from toold.store import A2AEvent, A2APushDeleted, A2APushProgress, A2APushRow, a2a_push_sql, a2a_task_sql
from toold.store.a2a_task_sql import A2ATaskRow
from toold.store.store_schema import open_database

SECRETS = PushSecrets(b"k" * KEY_BYTES)
MAX_LOOKS = 20
"""More looks for pending rows than any test here needs: a sender that spins exceeds them."""


class SqlRecords:
    """The configurations in a database."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database
        self.progress: asyncio.Queue[A2APushProgress | None] = asyncio.Queue()
        """What was written; None: a sender that spins."""
        self.looks = 0
        self.broken = False

    def add(self, task: str, principal: str, url: str) -> None:
        """A task with one event, which is to be sent to the address."""
        row = A2ATaskRow(
            id=task,
            principal=principal,
            agent="helper",
            context_id="c",
            state="TASK_STATE_COMPLETED",
            changed_at=1.0,
            ended=True,
            history=b"[]",
            last_event=1,
            new_events=(A2AEvent(1, b"{}"),),
        )
        a2a_task_sql.save(self.database, row)
        secrets = SECRETS.sealed({}, f"{task}/c")
        a2a_push_sql.write(self.database, A2APushRow(task, "c", url, "1.0", secrets, 0))

    async def write(self, entry: A2APushRow | A2APushDeleted | A2APushProgress) -> None:
        a2a_push_sql.write(self.database, entry)
        if isinstance(entry, A2APushProgress):
            await self.progress.put(entry)

    async def of_task(self, task_id: str) -> list[A2APushRow]:
        return a2a_push_sql.of_task(self.database, task_id)

    async def pending(self, limit: int) -> list[tuple[A2APushRow, str, str]]:
        self.looks += 1
        if self.looks == MAX_LOOKS:
            await self.progress.put(None)
        return a2a_push_sql.pending(self.database, limit)

    async def events(self, task_id: str, after: int, limit: int) -> list[A2AEvent]:
        if self.broken:
            raise RuntimeError("an error that nobody expects")
        return a2a_task_sql.events(self.database, task_id, after, limit)


@pytest.fixture
def records(tmp_path: Path) -> Iterator[SqlRecords]:
    connection = open_database(tmp_path / "toold.db")
    yield SqlRecords(connection)
    connection.close()


@asynccontextmanager
async def sending(records: SqlRecords, *hosts: str) -> AsyncIterator[None]:
    """A sender that runs."""
    sender = PushSender(records, cast("Any", SimpleNamespace()), SECRETS, hosts)
    running = asyncio.create_task(sender.run())
    try:
        yield
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await sender.close()


@pytest.mark.parametrize(
    "url", [" http://127.0.0.1/", "https://[v1.a.example]/", "//127.0.0.1/", "https://removed.test/"]
)
async def test_a_stored_address_that_is_not_valid_is_a_failed_attempt(records: SqlRecords, url: str) -> None:
    """It is tried again later, like an address that does not answer, and not at once."""
    records.add("t", "local", url)
    async with sending(records, "127.0.0.1", "*.example"):
        progress = await records.progress.get()
    assert progress is not None, "the sender spins"
    assert (progress.sent, progress.attempts, progress.next_at > time.time()) == (0, 1, True)


async def test_an_unexpected_error_is_a_failed_attempt(records: SqlRecords) -> None:
    """Whatever fails, the next attempt is later."""
    records.broken = True
    records.add("t", "local", "http://127.0.0.1/")
    async with sending(records, "127.0.0.1"):
        progress = await records.progress.get()
    assert progress is not None, "the sender spins"
    assert (progress.attempts, progress.next_at > time.time()) == (1, True)
