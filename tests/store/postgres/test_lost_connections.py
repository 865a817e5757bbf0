"""Commits whose connection is lost: before the server gets them, or before the node gets the answer."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
from tests.store.contract.stored_calls import Calls, stored
from tests.store.postgres.lossy_proxy import Loss, LossyProxy
from tests.store.postgres_databases import PostgresDatabase
from toold.store import Store, StoreError
from toold.store.postgres import postgres_reader
from toold.store.postgres.postgres_committer import PostgresCommitter

LOSSES: list[Loss] = ["request", "answer"]


@pytest.fixture
async def node(postgres_database: PostgresDatabase, proxy: LossyProxy) -> AsyncIterator[Store]:
    """A node whose connections pass the proxy."""
    direct = postgres_database.address
    postgres_database.address = proxy.address(postgres_database.name)
    store = postgres_database.node("n1")
    postgres_database.address = direct
    yield store
    await store.close()


@pytest.mark.parametrize("loss", LOSSES)
async def test_an_uncertain_start_becomes_certain(
    node: Store, proxy: LossyProxy, postgres_database: PostgresDatabase, call: Calls, loss: Loss
) -> None:
    """The caller waits until the node knows that the start is written, once, and by this call."""
    proxy.lose(loss)
    assert await node.journal.start(call.starts("a"))
    assert proxy.lost.is_set()
    assert not await node.journal.start(call.starts("a"))
    assert postgres_database.sql("SELECT count(*) FROM journal") == "1"


@pytest.mark.parametrize("loss", LOSSES)
async def test_an_uncertain_group_is_decided_call_by_call(
    node: Store, proxy: LossyProxy, call: Calls, loss: Loss
) -> None:
    """Each caller learns about its own call: known ids are refused, new ones are not."""
    node.sessions.open(call.session)
    assert await node.journal.start(call.starts("known"))
    await node.journal.end(call.ends("known"))
    proxy.lose(loss)
    answers = await asyncio.gather(
        *(node.journal.start(call.starts(key)) for key in ("known", "a", "a", "b")),
        node.journal.end_unstarted(call.ends_unstarted("known")),
        node.journal.end_unstarted(call.ends_unstarted("u")),
    )
    assert answers == [False, True, False, True, False, True]
    assert set(await stored(node)) == {"known", "u"}


@pytest.mark.parametrize("loss", LOSSES)
async def test_an_end_is_written_once(
    node: Store, proxy: LossyProxy, postgres_database: PostgresDatabase, call: Calls, loss: Loss
) -> None:
    """With one audit row."""
    node.sessions.open(call.session)
    await node.journal.start(call.starts("a"))
    proxy.lose(loss)
    await node.journal.end(call.ends("a"))
    assert proxy.lost.is_set()
    assert await stored(node) == {"a": ("done", b'{"text": "done"}')}
    await node.flush()
    assert postgres_database.sql("SELECT id FROM call") == "e0-a"


@pytest.mark.parametrize("loss", LOSSES)
async def test_a_lost_heartbeat_is_no_other_group(
    postgres_database: PostgresDatabase, proxy: LossyProxy, call: Calls, loss: Loss
) -> None:
    """The commit number of a heartbeat whose answer was lost is not taken for that of the next group."""
    direct = postgres_database.address
    postgres_database.address = proxy.address(postgres_database.name)
    node = postgres_database.node("n1", lease_s=1.0)
    postgres_database.address = direct
    proxy.lose(loss)
    await asyncio.to_thread(proxy.lost.wait, 60)
    assert await node.journal.start(call.starts("a"))
    assert postgres_database.sql("SELECT request_key, state FROM journal") == "a|started"
    await node.close()


async def test_a_server_that_has_become_a_standby_is_left(
    node: Store, postgres_database: PostgresDatabase, call: Calls
) -> None:
    """Its connection is still open, but accepts no writes: the node connects again, and the start is written."""
    postgres_database.sql("UPDATE node SET until = until")  # the node's connection is idle
    committer = node._writer._committer
    assert isinstance(committer, PostgresCommitter)
    committer._connection.execute("SET default_transaction_read_only = on")
    assert await node.journal.start(call.starts("a"))
    assert postgres_database.sql("SELECT state FROM journal") == "started"


async def test_while_the_database_is_away_ends_wait_and_starts_are_refused(
    node: Store, proxy: LossyProxy, call: Calls
) -> None:
    """An end is reported once it is written. A call does not start, and nothing of it is written later."""
    node.sessions.open(call.session)
    await node.journal.start(call.starts("a"))
    proxy.refusing = True
    proxy.disconnect()
    ending = asyncio.ensure_future(node.journal.end(call.ends("a")))
    while not _has_problem(node):
        await asyncio.sleep(0.01)
    with pytest.raises(StoreError, match="the database cannot be written"):
        await node.journal.start(call.starts("b"))
    await node.flush()
    assert not ending.done()
    proxy.refusing = False
    await ending
    assert not _has_problem(node)
    assert await stored(node) == {"a": ("done", b'{"text": "done"}')}
    assert await node.journal.start(call.starts("b"))


def _has_problem(node: Store) -> bool:
    return node.problem is not None


@pytest.mark.parametrize("loss", LOSSES)
async def test_an_adoption_whose_answer_is_lost_is_found(
    postgres_database: PostgresDatabase, proxy: LossyProxy, call: Calls, loss: Loss, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node gets the calls that it has adopted, once; they are not lost until its end."""
    monkeypatch.setattr(postgres_reader, "READER_THREADS", 1)  # the connection that is lost is the one that is open
    first = postgres_database.node("n0")
    first.sessions.open(call.session)
    await first.journal.start(call.detached("d"))
    direct = postgres_database.address
    postgres_database.address = proxy.address(postgres_database.name)
    node = postgres_database.node("n1")
    postgres_database.address = direct
    assert await node.journal.adopt_detached() == []
    await first.close()
    proxy.lose(loss)
    assert [each.call_id for each in await node.journal.adopt_detached()] == ["e0-d"]
    assert proxy.lost.is_set()
    assert await node.journal.adopt_detached() == []
    assert postgres_database.sql("SELECT node, commit_number < 0 FROM journal") == "n1|t"
    await node.close()


async def test_a_read_without_an_answer_does_not_keep_the_store_open(node: Store, proxy: LossyProxy) -> None:
    """The read fails, and its thread ends: else the process could not."""
    assert await node.sessions.call_states("s-1", ["a"]) == {}
    proxy.silent = True
    reader = node._reader
    assert isinstance(reader, postgres_reader.PostgresReader)
    began = threading.Event()

    def ask(connection: postgres_reader.Connection) -> object:
        began.set()
        return connection.execute("SELECT 1").fetchone()

    reading = asyncio.ensure_future(reader.run(ask))
    await asyncio.to_thread(began.wait, 60)
    await reader.close()
    with pytest.raises(StoreError):
        await reading
    with pytest.raises(StoreError, match="closed"):
        await node.sessions.call_states("s-1", ["a"])
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("store-reader")] == []
    proxy.silent = False
    proxy.disconnect()  # the writer's connection, so that the store can be closed


async def test_reads_survive_a_lost_connection(node: Store, proxy: LossyProxy, call: Calls) -> None:
    """A question is asked again on a new connection; while none can be made, the error says so."""
    node.sessions.open(call.session)
    await node.journal.start(call.starts("a"))
    for _ in range(3):
        assert await node.sessions.call_states("s-1", ["a"]) == {"a": "expired"}
        proxy.disconnect()
    assert await node.sessions.call_states("s-1", ["a"]) == {"a": "expired"}
    proxy.refusing = True
    proxy.disconnect()
    for _ in range(3):
        with pytest.raises(StoreError):
            await node.sessions.call_states("s-1", ["a"])
    proxy.refusing = False
    await node.flush()
    assert await node.sessions.call_states("s-1", ["a"]) == {"a": "expired"}
