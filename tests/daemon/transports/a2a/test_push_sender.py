"""Which notifications are sent when, with the SQL of the store."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from toold.daemon.persistence.key_files import KEY_BYTES
from toold.daemon.persistence.sealed_texts import SealedTexts
from toold.daemon.transports.a2a import push_sender
from toold.daemon.transports.a2a.push_sender import PushSender
from toold.daemon.transports.a2a.push_turns import (
    MAX_SENDING_OF_PRINCIPAL,
    MAX_SENDING_TO_HOST,
    PendingPush,
    PushTurns,
)
from toold.protocol.tool_call import Principal
from toold.store import A2AEvent, A2APushDeleted, A2APushProgress, A2APushRow, A2ATaskRow
from toold.store.sqlite import a2a_push_sql, a2a_task_sql
from toold.store.sqlite.store_schema import open_database

SECRETS = SealedTexts([b"k" * KEY_BYTES])
MAX_LOOKS = 20
"""More looks for pending rows than any test here needs: a sender that spins exceeds them."""


class SqlRecords:
    """The configurations in a database."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database
        self.progress: asyncio.Queue[A2APushProgress | None] = asyncio.Queue()
        """What was written; None: a sender that spins."""
        self.looks = 0
        self.slow: asyncio.Event | None = None
        """Until it is set, looks wait with the rows that they have read."""
        self.read = asyncio.Event()
        self.broken = False

    def add(self, task: str, principal: str, url: str, events: int = 1) -> None:
        """A task with events, which are to be sent to the address."""
        row = A2ATaskRow(
            id=task,
            principal=principal,
            agent="helper",
            context_id="c",
            state="TASK_STATE_COMPLETED",
            changed_at=1.0,
            ended=True,
            history=b"[]",
            last_event=events,
            new_events=tuple(A2AEvent(number, b"{}") for number in range(1, events + 1)),
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

    async def pending(self, of_each: int) -> list[tuple[A2APushRow, str, str]]:
        self.looks += 1
        if self.looks == MAX_LOOKS:
            await self.progress.put(None)
        rows = a2a_push_sql.pending(self.database, of_each)
        if self.slow is not None:
            self.read.set()
            await self.slow.wait()
        return rows

    async def count(self, principal: Principal) -> int:
        return a2a_push_sql.count(self.database, principal.name)

    async def events(self, task_id: str, after: int) -> list[A2AEvent]:
        if self.broken:
            raise RuntimeError("an error that nobody expects")
        return a2a_task_sql.events(self.database, task_id, after)


@pytest.fixture
def records(tmp_path: Path) -> Iterator[SqlRecords]:
    connection = open_database(tmp_path / "toold.db")
    yield SqlRecords(connection)
    connection.close()


@asynccontextmanager
async def sending(records: SqlRecords, *hosts: str) -> AsyncIterator[PushSender]:
    """A sender that runs."""
    sender = PushSender(records, cast("Any", SimpleNamespace()), SECRETS, hosts)
    running = asyncio.create_task(sender.run())
    try:
        yield sender
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


async def test_addresses_that_do_not_answer_delay_only_their_principal(records: SqlRecords) -> None:
    """With 24 of them at one host, another principal's notification is sent at once; they have two requests."""
    silent: list[asyncio.StreamWriter] = []
    received = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"POST /silent"):
            silent.append(writer)
            return
        writer.write(b"HTTP/1.1 204 S\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
        received.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    for number in range(24):
        records.add(f"a{number:02}", "greedy", f"{url}/silent")
    records.add("z", "other", f"{url}/hook")
    async with server:
        async with sending(records, "127.0.0.1"):
            progress = await records.progress.get()
        for writer in silent:
            writer.close()
    assert progress is not None
    assert (progress.task, progress.sent, received.is_set()) == ("z", 1, True)
    assert len(silent) <= MAX_SENDING_OF_PRINCIPAL


def push(principal: str, number: int, host: str) -> PendingPush:
    return A2APushRow(f"{principal}{number}", "c", f"https://{host}/", "1.0", b"", 0), principal, "helper"


def test_principals_have_turns() -> None:
    """Each has its share; when a request ends, the next is that of the principal whose turn was longest ago."""
    due = [push(name, number, f"{name}{number}.example") for name in "abcdefghij" for number in range(3)]
    turns = PushTurns()
    started = list(turns.take(due))
    assert [principal for _, principal, _ in started] == list("abcdefgh")
    turns.end(started[0][0])
    turns.end(started[1][0])
    assert [principal for _, principal, _ in turns.take(due)] == ["i", "j"]
    assert [principal for _, principal, _ in PushTurns().take(due[:3])] == ["a"] * MAX_SENDING_OF_PRINCIPAL


def test_a_host_has_a_share() -> None:
    """A host gets a limited number of requests, and what goes to others does not wait behind them."""
    due = [push(name, number, "same.example") for name in "abc" for number in range(3)]
    due.append(push("c", 3, "other.example"))
    hosts = [row.url for row, _, _ in PushTurns().take(due)]
    assert hosts.count("https://same.example/") == MAX_SENDING_TO_HOST
    assert hosts.count("https://other.example/") == 1


async def test_a_stored_address_is_checked_before_each_request(records: SqlRecords) -> None:
    """An address that would be refused today gets nothing, although it answers."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 S\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        records.add("t", "local", f"http://user:word@127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        async with sending(records, "127.0.0.1"):
            progress = await records.progress.get()
    assert progress is not None
    assert (progress.sent, progress.attempts) == (0, 1)


async def test_a_turn_ends_before_all_events_are_sent(records: SqlRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    """A receiver that takes long for each event has one event in each turn, so that others wait for one event only."""
    monkeypatch.setattr(push_sender, "MAX_TURN_S", -1.0)
    looks: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        looks.append(records.looks)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 S\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        records.add("t", "local", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", events=3)
        async with sending(records, "127.0.0.1"):
            sent = [await records.progress.get() for _ in range(3)]
    assert [progress and progress.sent for progress in sent] == [1, 2, 3]
    assert len(set(looks)) == 3, "each event has its own turn"


async def test_a_row_that_was_read_before_its_turn_ended_is_not_sent_again(records: SqlRecords) -> None:
    """A look that began during a turn has the row from before; the event is not sent twice."""
    requests = asyncio.Event()
    answered = asyncio.Event()
    received: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        received.append(1)
        requests.set()
        await answered.wait()
        writer.write(b"HTTP/1.1 204 S\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        records.add("t", "local", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        async with sending(records, "127.0.0.1") as sender:
            await requests.wait()
            records.slow = asyncio.Event()
            sender.wake()
            await records.read.wait()  # the look has the row, and its turn has not ended
            answered.set()
            assert await records.progress.get() is not None
            while repr(sender) != "<PushSender sending=0>":
                await asyncio.sleep(0)
            looks = records.looks
            records.slow.set()
            while records.looks == looks:  # the next look
                await asyncio.sleep(0)
            assert repr(sender) == "<PushSender sending=0>"
    assert len(received) == 1


def test_a_look_reads_only_what_has_something_to_send(records: SqlRecords) -> None:
    """An index has the waiting configurations; delivered ones leave it, and later events bring them back."""
    for number in range(3):
        records.add(f"t{number}", "local", "https://hook.example/")
    a2a_push_sql.write(records.database, A2APushProgress("t1", "c", 1, 0, 0.0))
    waiting = [row.task for row, _, _ in a2a_push_sql.pending(records.database, 9)]
    assert (waiting, a2a_push_sql.count(records.database, "local")) == (["t0", "t2"], 2)
    assert a2a_push_sql.count(records.database, "another") == 0
    task = a2a_task_sql.find(records.database, "t1", "local")
    assert task is not None
    later = msgspec.structs.replace(task, last_event=2, new_events=(A2AEvent(2, b"{}"),), ended=False)
    a2a_task_sql.save(records.database, later)
    assert {row.task for row, _, _ in a2a_push_sql.pending(records.database, 9)} == {"t0", "t1", "t2"}
    statements: list[str] = []
    records.database.set_trace_callback(statements.append)
    a2a_push_sql.pending(records.database, 9)
    records.database.set_trace_callback(None)
    plan = records.database.execute(f"EXPLAIN QUERY PLAN {statements[0]}").fetchall()
    assert any("a2a_push_waiting" in str(step) for step in plan), plan
