"""Leases, fences, and what becomes of a dead node's calls and sessions, on a real database."""

import asyncio
from contextlib import nullcontext, suppress

import psycopg
import pytest
from tests.store.contract.stored_calls import KEY_HASH, Calls, stored
from tests.store.postgres.conftest import OpenNode
from tests.store.postgres_databases import PostgresDatabase
from toold.store import Retention, SessionHeldError, Store, boot_time
from toold.store.postgres.pg_connection import connect_to_postgres
from toold.store.store_errors import NodeFencedError, StoreError

WITHIN_COMMIT = """SELECT count(*) FROM pg_stat_activity WHERE application_name = 'toold stopped writer'
AND wait_event = 'ClientRead' AND query LIKE 'SELECT renew_lease%'"""
JOURNAL = "SELECT request_key, state, node FROM journal ORDER BY 1"


async def declare_dead(store: Store, epoch: str, *, unreachable: bool = True) -> bool:
    assert store.cluster is not None
    return await store.cluster.declare_dead(epoch, "unreachable" if unreachable else "none")


async def test_a_dead_node_commits_nothing(open_node: OpenNode, postgres_database: PostgresDatabase) -> None:
    """Its next commit fails, the process learns it before any caller does, and its lease is not good any longer."""
    fenced: list[str] = []
    dead, other, call = open_node("dead", on_fenced=fenced.append), open_node("other"), Calls()
    dead.sessions.open(call.session)
    assert await dead.journal.start(call.starts("a"))
    assert dead.cluster is not None
    assert dead.cluster.lease.good(boot_time())
    assert await declare_dead(other, "dead")
    seen: list[list[str]] = []
    ending = asyncio.ensure_future(dead.journal.end(call.ends("a")))
    ending.add_done_callback(lambda _: seen.append(list(fenced)))
    with pytest.raises(NodeFencedError, match="another node has declared this one dead"):
        await ending
    assert seen == [["another node has declared this one dead"]]
    assert not dead.cluster.lease.good(boot_time())
    with pytest.raises(StoreError):
        await dead.journal.start(call.starts("b"))
    assert postgres_database.sql(JOURNAL) == "a|interrupted|dead"
    assert fenced == ["another node has declared this one dead"]


async def test_an_idle_node_learns_that_it_is_dead_by_its_heartbeat(open_node: OpenNode) -> None:
    """Without anything to write."""
    learned = asyncio.Event()
    loop = asyncio.get_running_loop()
    open_node("dead", lease_s=0.4, on_fenced=lambda _: loop.call_soon_threadsafe(learned.set))
    assert await declare_dead(open_node("other"), "dead")
    await asyncio.wait_for(learned.wait(), 60)


async def test_heartbeats_keep_a_lease(open_node: OpenNode, postgres_database: PostgresDatabase) -> None:
    """A node that writes nothing renews it, so it is not declared dead without a suspicion."""
    node, other = open_node("idle", lease_s=2.0), open_node("other")
    before = int(postgres_database.sql("SELECT commits FROM node WHERE epoch = 'idle'"))
    while int(postgres_database.sql("SELECT commits FROM node WHERE epoch = 'idle'")) < before + 2:
        await asyncio.sleep(0.05)
    assert not await declare_dead(other, "idle", unreachable=False)
    assert node.problem is None


async def test_a_node_is_declared_dead_once_its_lease_has_ended(
    open_node: OpenNode, postgres_database: PostgresDatabase
) -> None:
    """Without a suspicion; the database's clock decides."""
    await open_node("stopped").flush()  # it has deleted what has expired: a commit would renew its lease
    other = open_node("other")
    assert not await declare_dead(other, "stopped", unreachable=False)
    postgres_database.sql("UPDATE node SET until = clock_timestamp() - interval '1 ms' WHERE epoch = 'stopped'")
    assert await declare_dead(other, "stopped", unreachable=False)
    assert await declare_dead(other, "stopped", unreachable=False)  # it is dead already


async def test_a_silent_node_is_declared_dead_once_it_has_missed_its_heartbeats(
    open_node: OpenNode, postgres_database: PostgresDatabase
) -> None:
    """With a lease of 60 s this is 45 s after its last commit, by the database's clock. A node that does not answer but
    renews its lease is alive.
    """
    await open_node("stopped").flush()
    other = open_node("other")
    assert other.cluster is not None
    for left_s, state, dead in [(60, "live", False), (16, "live", False), (14, "draining", False), (14, "live", True)]:
        values = f"until = clock_timestamp() + interval '{left_s} s', state = '{state}'"
        postgres_database.sql(f"UPDATE node SET {values} WHERE epoch = 'stopped'")  # noqa: S608
        assert await other.cluster.declare_dead("stopped", "silent") is dead


@pytest.mark.parametrize("pipeline", [True, False])
async def test_a_node_that_is_paused_within_a_commit_does_not_stop_the_others(
    open_node: OpenNode, postgres_database: PostgresDatabase, *, pipeline: bool
) -> None:
    """Its open transaction has locked its row. Another node does not wait for that for long. When it reads the nodes
    the next time, it closes the connection, and declares the node dead.
    """
    await open_node("stopped").flush()
    other = open_node("other", lease_s=1.0)
    postgres_database.sql("UPDATE node SET until = clock_timestamp() - interval '1 ms' WHERE epoch = 'stopped'")
    paused = connect_to_postgres(postgres_database.address, name="toold stopped writer", lost_after_s=60)
    with suppress(psycopg.Error), paused.pipeline() if pipeline else nullcontext():
        paused.execute("BEGIN")
        paused.execute("SELECT renew_lease('stopped', commits + 1) FROM node WHERE epoch = 'stopped'")
        assert other.cluster is not None
        async with asyncio.timeout(60):
            while postgres_database.sql(WITHIN_COMMIT) != "1":
                await asyncio.sleep(0.01)
            assert not await declare_dead(other, "stopped", unreachable=False)
            while not await declare_dead(other, "stopped", unreachable=False):
                await other.cluster.nodes()
    paused.close()


async def test_a_draining_node_is_not_suspected(open_node: OpenNode) -> None:
    """Its port closes before it ends."""
    draining, other = open_node("draining"), open_node("other")
    assert draining.cluster is not None
    await draining.cluster.drain()
    assert not await declare_dead(other, "draining")
    (row,) = [node for node in await draining.cluster.nodes() if node.epoch == "draining"]
    assert row.state == "draining"
    assert 0 < row.left_s <= 60


async def test_burial_settles_what_a_node_leaves(open_node: OpenNode, postgres_database: PostgresDatabase) -> None:
    """Its calls are interrupted, with one audit row each; any node may claim its sessions and adopt its detached calls;
    the sizes of its results still count.
    """
    dead, call = open_node("dead"), Calls(epoch="dead")
    other = open_node("other", retention=Retention(results_bytes=250))
    dead.sessions.open(call.session)
    for key in ("runs", "done"):
        await dead.journal.start(call.starts(key))
    await dead.journal.end(call.ends("done", bytes(200)))
    await dead.journal.start(call.detached("d"))
    assert await declare_dead(other, "dead")
    assert postgres_database.sql("SELECT id, outcome FROM call ORDER BY 1") == "dead-done|ok\ndead-runs|OUTCOME_UNKNOWN"
    assert postgres_database.sql(JOURNAL) == "d|started|\ndone|done|dead\nruns|interrupted|dead"
    assert await stored(other) == {"done": ("done", bytes(200)), "runs": ("interrupted", None)}
    (adopted,) = await other.journal.detached_calls()
    assert (adopted.call_id, adopted.arguments, adopted.session.id) == ("dead-d", b'{"a": 1}', "s-1")
    assert await other.journal.detached_calls() == []
    await other.journal.end(call.ends("d", bytes(100)))
    assert (await stored(other))["done"] == ("expired", None)  # 300 bytes of both nodes exceed 250


async def test_a_session_has_one_holder(open_node: OpenNode) -> None:
    """A node gets a session that another one holds only after that has released it, or is dead."""
    first, second, third, call = open_node("n1"), open_node("n2"), open_node("n3"), Calls()
    first.sessions.open(call.session)
    assert await first.sessions.find_by_key_hash(KEY_HASH) is not None
    with pytest.raises(SessionHeldError) as held:
        await second.sessions.find_by_key_hash(KEY_HASH)
    assert (held.value.holder.epoch, held.value.holder.name) == ("n1", "node n1")
    first.sessions.release(["s-1"])
    await first.flush()
    assert await second.sessions.find_by_key_hash(KEY_HASH) is not None
    with pytest.raises(SessionHeldError):
        await first.sessions.find_by_key_hash(KEY_HASH)
    assert await declare_dead(third, "n2")
    assert await third.sessions.find_by_key_hash(KEY_HASH) is not None
    assert third.cluster is not None
    await third.cluster.leave()
    assert await first.sessions.find_by_key_hash(KEY_HASH) is not None
    assert await first.sessions.find_by_key_hash(b"unknown") is None


async def test_of_simultaneous_claims_one_succeeds(open_node: OpenNode) -> None:
    """The others get the holder."""
    nodes = [open_node(f"n{number}") for number in range(3)]
    sessions = [Calls(f"session-{number}") for number in range(20)]
    for calls in sessions:
        nodes[0].sessions.open(calls.session)
    nodes[0].sessions.release([calls.session.id for calls in sessions])
    await nodes[0].flush()

    async def claim(node: Store, calls: Calls) -> bool:
        try:
            return await node.sessions.find_by_key_hash(calls.session.id.encode()) is not None
        except SessionHeldError:
            return False

    for calls in sessions:
        assert sorted(await asyncio.gather(*(claim(node, calls) for node in nodes))) == [False, False, True]


async def test_a_dead_node_claims_and_adopts_nothing(open_node: OpenNode) -> None:
    """Neither a session nor a detached call; it learns that it is dead."""
    fenced: list[str] = []
    dead, other, call = open_node("dead", on_fenced=fenced.append), open_node("other"), Calls()
    other.sessions.open(call.session)
    other.sessions.release(["s-1"])
    await other.flush()
    assert await declare_dead(other, "dead")
    with pytest.raises((NodeFencedError, StoreError)):
        await dead.sessions.find_by_key_hash(KEY_HASH)
    with pytest.raises((NodeFencedError, StoreError)):
        await dead.journal.detached_calls()
    await dead.flush()
    assert fenced == ["another node has declared this one dead"]
    assert await other.sessions.find_by_key_hash(KEY_HASH) is not None


async def test_an_id_starts_on_one_node(open_node: OpenNode, postgres_database: PostgresDatabase) -> None:
    """Two nodes that start the same calls at the same time share them: each call starts once."""
    nodes, call = [open_node("n1"), open_node("n2")], Calls()
    keys = [f"k{number:03}" for number in range(200)]
    orders = (keys, list(reversed(keys)))
    started = await asyncio.gather(
        *(node.journal.start(call.starts(key)) for node, order in zip(nodes, orders, strict=True) for key in order)
    )
    first, second = dict(zip(orders[0], started[:200], strict=True)), dict(zip(orders[1], started[200:], strict=True))
    assert all(first[key] != second[key] for key in keys)
    assert postgres_database.sql("SELECT count(*) FROM journal WHERE state = 'started'") == "200"


async def test_lost_commits_end_the_node(open_node: OpenNode, postgres_database: PostgresDatabase) -> None:
    """After a failover to a standby that lags behind, the database knows less than the node was assured of."""
    fenced: list[str] = []
    node, call = open_node("n1", on_fenced=fenced.append), Calls()
    await node.journal.start(call.starts("a"))
    postgres_database.sql("UPDATE node SET commits = commits - 1; DELETE FROM journal")
    with pytest.raises(StoreError, match="has lost acknowledged commits"):  # a heartbeat may find it first
        await node.journal.start(call.starts("b"))
    assert len(fenced) == 1
    assert postgres_database.sql("SELECT count(*) FROM journal") == "0"


async def test_a_node_that_left_commits_nothing_and_is_not_fenced(open_node: OpenNode) -> None:
    """Its calls that still run are interrupted."""
    fenced: list[str] = []
    node, other, call = open_node("n1", on_fenced=fenced.append), open_node("n2"), Calls()
    node.sessions.open(call.session)
    await node.journal.start(call.starts("a"))
    assert node.cluster is not None
    await node.cluster.leave()
    with pytest.raises(StoreError, match="has left the cluster"):
        await node.journal.start(call.starts("b"))
    assert await stored(other) == {"a": ("interrupted", None)}
    assert fenced == []


async def test_entries_behind_the_last_commit_are_refused(open_node: OpenNode) -> None:
    """They do not look like those of a node that was declared dead."""
    fenced: list[str] = []
    node, call = open_node("n1", on_fenced=fenced.append), Calls()
    assert node.cluster is not None
    left, start = await asyncio.gather(
        node.cluster.leave(), node.journal.start(call.starts("a")), return_exceptions=True
    )
    assert left is None
    assert isinstance(start, StoreError)
    assert fenced == []


async def test_a_read_costs_no_commit(open_node: OpenNode, postgres_database: PostgresDatabase) -> None:
    """If nothing is queued, although reads wait for what was."""
    node = open_node("n1")
    commits = "SELECT commits FROM node"
    await node.flush()  # the first run of retention is a commit
    before = postgres_database.sql(commits)
    for _ in range(5):
        await node.journal.find_run("none", "ann", "chat")
    assert postgres_database.sql(commits) == before
