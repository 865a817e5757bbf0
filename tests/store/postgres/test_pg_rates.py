"""Rates of sources, quotas of calls and running calls of principals, of all nodes, on a real database."""

import asyncio
import itertools
import time
from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.postgres_cluster import Cluster
from tests.store.postgres.conftest import OpenNode
from tests.store.postgres_databases import PostgresDatabase, new_database
from toold.store import QuotaUse, SharedLimitsPort, Store, StoreError, TakenCall


def limits_of(store: Store) -> SharedLimitsPort:
    assert store.cluster is not None
    return store.cluster.limits


async def test_a_rate_gives_each_slot_once(open_node: OpenNode, postgres_database: PostgresDatabase) -> None:
    """Two nodes take the burst, then one slot after the other; a call that cannot wait takes none."""
    nodes, start = [limits_of(open_node(name)) for name in "ab"], time.monotonic()

    async def reserve(node: SharedLimitsPort, max_wait_s: float) -> tuple[bool, float]:
        slot = await node.reserve_slot("crm", "local", interval_s=100.0, burst=3, max_wait_s=max_wait_s)
        return slot.reserved, slot.wait_s

    taken = await asyncio.gather(*(reserve(nodes[number % 2], 3600.0) for number in range(8)))
    assert all(reserved for reserved, _ in taken)
    late_s = time.monotonic() - start  # the slots come nearer while the test runs
    waits = sorted(wait_s for _, wait_s in taken)
    for wait_s, slot_s in zip(waits, (0, 0, 0, 100, 200, 300, 400, 500), strict=True):
        assert max(0.0, slot_s - late_s) <= wait_s <= slot_s + 0.001
    reserved, wait_s = await reserve(nodes[0], 550.0)
    assert (reserved, 550.0 < wait_s <= 600.0) == (False, True)
    assert (await reserve(nodes[1], 700.0))[0]
    other = await nodes[0].reserve_slot("crm", "token:ci", interval_s=100.0, burst=3, max_wait_s=-1.0)
    assert (other.reserved, other.wait_s, other.full_in_s) == (False, 0.0, 0.0)
    postgres_database.sql("UPDATE rate_slot SET next_at = next_at - 10000")
    assert await reserve(nodes[0], 0.0) == (True, 0.0)


async def take(node: SharedLimitsPort, *quotas: QuotaUse, principal: str = "token:ci") -> TakenCall:
    return await node.take_call(principal, quotas)


async def test_a_quota_counts_the_calls_of_all_nodes(open_node: OpenNode) -> None:
    """By principal; a call that one quota refuses counts for none."""
    a, b = limits_of(open_node("a")), limits_of(open_node("b"))
    small, large = QuotaUse("small", None, 3, 0), QuotaUse("large", None, 5, 1)
    for node in (a, b, a):
        assert (await take(node, small, large)).refused_by is None
    refused = await take(b, large, small)
    assert (refused.refused_by, refused.of_day) == ("small", True)
    assert 0 < refused.wait_s <= 86400
    assert (await take(a, large)).refused_by is None
    assert (await take(b, large)).refused_by == "large"
    assert (await take(b, small, large, principal="local")).refused_by is None


async def test_the_calls_of_a_minute_are_those_of_any_60_seconds(
    open_node: OpenNode, postgres_database: PostgresDatabase
) -> None:
    """Two nodes at once; the next call is possible when the call that blocks it is older."""
    nodes, quota = [limits_of(open_node(name)) for name in "ab"], QuotaUse("q", 4, None, 0)
    taken = await asyncio.gather(*(take(nodes[number % 2], quota) for number in range(6)))
    if sum(each.refused_by is None for each in taken) != 4:  # more than a minute has passed
        pytest.fail(str(taken))
    assert all(each.of_day is False and 0 < each.wait_s <= 61 for each in taken if each.refused_by)
    postgres_database.sql("UPDATE quota_second SET second = second - 30")
    waits = (await take(nodes[0], quota)).wait_s
    assert waits <= 31
    postgres_database.sql("UPDATE quota_second SET second = second - 60")
    assert (await take(nodes[1], quota)).refused_by is None
    assert postgres_database.sql("SELECT sum(calls) FROM quota_second") == "1"


async def test_many_calls_at_once_are_counted_exactly(open_node: OpenNode) -> None:
    """Of 60 calls at two nodes, as many as the quota has."""
    nodes, quota = [limits_of(open_node(name)) for name in "ab"], QuotaUse("q", None, 25, 0)
    taken = await asyncio.gather(*(take(nodes[number % 2], quota) for number in range(60)))
    assert sum(each.refused_by is None for each in taken) == 25


async def test_a_node_gets_what_others_do_not_use(open_node: OpenNode, postgres_database: PostgresDatabase) -> None:
    """Its part is smaller once others want some, but what runs keeps its permit; a dead node has none."""
    store, other = open_node("a"), open_node("b")
    a, b = limits_of(store), limits_of(other)
    assert await a.share_running("token:ci", max_running=5, wants=5, uses=0) == (5, 5)
    held, part = await b.share_running("token:ci", max_running=5, wants=5, uses=0)
    assert (held, part in {2, 3}) == (0, True)
    held, part = await a.share_running("token:ci", max_running=5, wants=5, uses=4)
    assert (held, part in {2, 3}) == (4, True)
    held, _ = await b.share_running("token:ci", max_running=5, wants=5, uses=0)
    assert held == 1
    assert other.cluster is not None
    await other.cluster.declare_dead("a", "unreachable")
    assert await b.share_running("token:ci", max_running=5, wants=5, uses=1) == (5, 5)
    with pytest.raises(StoreError):
        await a.share_running("token:ci", max_running=5, wants=1, uses=0)
    assert await b.share_running("token:ci", max_running=5, wants=0, uses=0) == (0, 0)
    assert postgres_database.sql("SELECT count(*) FROM running_share") == "0"


@pytest.fixture(scope="module")
def shares_connection(cluster: Cluster, postgres_template: str) -> Iterator[psycopg.Connection]:
    """A database with the rows of five nodes."""
    with new_database(cluster, postgres_template) as database, psycopg.connect(database.address) as connection:
        connection.execute("SET search_path = toold")
        connection.execute(
            "INSERT INTO node (epoch, name, state, until, lease_s) SELECT name, name, 'live', now(), 1 "
            "FROM unnest(ARRAY['n0', 'n1', 'n2', 'n3', 'n4']) AS name"
        )
        connection.commit()
        yield connection


@given(st.integers(1, 12), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 14), st.integers(0, 3)), max_size=40))
@settings(max_examples=30)
def test_shares_never_exceed_the_limit(
    shares_connection: psycopg.Connection, limit: int, steps: list[tuple[int, int, int]]
) -> None:
    """Nodes ask for any numbers in any order, and calls end meanwhile: the permits of all nodes together stay within
    the limit; when all have asked often enough, each has its part, and nothing that is wanted is left.
    """
    connection, held, wanted = shares_connection, dict.fromkeys(range(5), 0), dict.fromkeys(range(5), 0)

    def ask(node: int, uses: int) -> int:
        row = connection.execute(
            "SELECT held, part FROM share_running(%s, 'p', %s, %s, %s)", (f"n{node}", limit, wanted[node], uses)
        ).fetchone()
        assert row is not None
        held[node] = row[0]
        assert sum(held.values()) <= limit
        return int(row[1])

    for node, wants, ended in steps:
        wanted[node] = min(limit, wants)
        ask(node, max(0, held[node] - ended))
    for node in itertools.chain(range(5), range(5)):
        ask(node, 0)
    assert sum(held.values()) == min(limit, sum(wanted.values()))
    smallest_unsatisfied = min((held[node] for node in range(5) if held[node] < wanted[node]), default=None)
    if smallest_unsatisfied is not None:
        assert max(held.values()) <= smallest_unsatisfied + 1
    connection.rollback()
