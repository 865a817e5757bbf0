"""The audit chains of several nodes: who extends which, what a dead node leaves, and what verification finds."""

import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from tests.store.postgres_databases import KEY, PostgresDatabase
from toold.audit import ChainFindings, ChainKeyError, verify_chains
from toold.store import CallRow, Retention, Store
from toold.store.postgres.pg_fenced_commits import FencedCommits
from toold.store.postgres.postgres_archive import open_postgres_archive

MakeRow = Callable[..., CallRow]

pytestmark = pytest.mark.process


async def record(store: Store, *rows: CallRow) -> None:
    for row in rows:
        store.audit.record(row)
    await store.flush()
    assert store.problem is None


def verified(database: PostgresDatabase, key: bytes = KEY) -> dict[int, ChainFindings]:
    with open_postgres_archive(database.address) as archive:
        return verify_chains(key, archive)


def problems(database: PostgresDatabase) -> list[tuple[int, str, int]]:
    """The chain, the fault and the seq of each problem."""
    found = verified(database)
    return [(number, each.fault, each.first_seq) for number, findings in found.items() for each in findings.problems]


async def test_each_node_extends_a_chain_of_its_own(postgres_database: PostgresDatabase, row: MakeRow) -> None:
    """Nodes that run at the same time have different chains; a node that starts later continues one that was left."""
    first, second = postgres_database.node("e1"), postgres_database.node("e2")
    assert first.audit.chain != second.audit.chain
    await record(first, row(id="a"))
    await record(second, row(id="b"), row(id="c"))
    await second.close()
    third = postgres_database.node("e3")
    assert third.audit.chain == second.audit.chain
    await record(third, row(id="d"))
    await third.close()
    await first.close()
    found = verified(postgres_database)
    assert [(findings.intact, findings.checked, findings.gaps) for findings in found.values()] == [
        (True, 1, []),
        (True, 3, []),
    ]
    calls = postgres_database.sql("SELECT chain, seq, id FROM call ORDER BY number")
    assert calls.split("\n") == ["0|1|a", "1|1|b", "1|2|c", "1|3|d"]


async def test_all_nodes_see_all_rows_and_sums(postgres_database: PostgresDatabase, row: MakeRow) -> None:
    """Rows, searches and sums are those of all nodes; the outbox is that of the node's own chain."""
    first, second = postgres_database.node("e1"), postgres_database.node("e2")
    await record(first, row(id="a"))
    await record(second, row(id="b"))
    await record(first, row(id="c"))
    assert [call.id for call in await second.audit.recent(10)] == ["c", "b", "a"]
    assert (await second.audit.totals()).all.calls == 3
    assert [call.call.id for call in await first.audit.unsent_calls(0, 10)] == ["a", "c"]
    assert [call.call.id for call in await second.audit.unsent_calls(0, 10)] == ["b"]
    with open_postgres_archive(postgres_database.address) as archive:
        exported = {call.call.id: call.chain for call in archive.calls_since(0.0)}
    assert exported["a"] == exported["c"] != exported["b"]
    await first.close()
    await second.close()


async def test_a_dead_nodes_chain_gets_a_gap(postgres_database: PostgresDatabase, row: MakeRow) -> None:
    """The node that starts under the name of a dead one continues its chain, and states that calls may be missing."""
    dead = postgres_database.node("e1", "the node")
    await record(dead, row(id="a"))
    postgres_database.sql("UPDATE node SET until = clock_timestamp() - interval '1 s'")
    store = postgres_database.node("e2", "the node")
    assert store.audit.chain == dead.audit.chain
    await record(store, row(id="b"))
    (findings,) = verified(postgres_database).values()
    assert findings.intact
    assert [gap.after_seq for gap in findings.gaps] == [1]
    await store.close()
    await dead.close()


async def test_changed_and_removed_rows_are_found(postgres_database: PostgresDatabase, row: MakeRow) -> None:
    """A changed row and a removed one are problems of their chain; the others stay intact."""
    first, second = postgres_database.node("e1"), postgres_database.node("e2")
    await record(first, *(row(id=name, message="a\0") for name in "abcd"))
    await record(second, row(id="x"))
    await first.close()
    await second.close()
    assert problems(postgres_database) == []
    postgres_database.sql("UPDATE call SET tool = 'chat' WHERE id = 'b'; DELETE FROM call WHERE id = 'd'")
    assert problems(postgres_database) == [(0, "changed", 2), (0, "missing", 4)]


async def bound(database: PostgresDatabase, row: MakeRow) -> None:
    """Two chains with rows, of which the second is bound to the first."""
    first, second = database.node("e1"), database.node("e2")
    await record(first, *(row(id=name) for name in "abc"))
    await record(second, row(id="x"))
    await first.close()
    await second.close()


async def test_a_missing_chain_is_found(postgres_database: PostgresDatabase, row: MakeRow) -> None:
    """A chain that is removed with its rows, its checkpoints and its head is missed by the other one."""
    await bound(postgres_database, row)
    postgres_database.sql(
        "DELETE FROM call WHERE chain = 0; DELETE FROM checkpoint WHERE chain = 0;"
        "DELETE FROM chain_binding WHERE chain = 0; DELETE FROM chain WHERE number = 0"
    )
    (findings,) = verified(postgres_database).values()
    assert [(each.fault, "is missing as a whole" in each.message) for each in findings.problems] == [("missing", True)]


async def test_a_reset_chain_is_found(postgres_database: PostgresDatabase, row: MakeRow) -> None:
    """A chain that is reset to an earlier state, which was intact, lacks rows that the other one states."""
    first, second = postgres_database.node("e1"), postgres_database.node("e2")
    await record(first, row(id="a"))
    await first.close()
    postgres_database.sql("CREATE TABLE kept_head AS SELECT * FROM chain WHERE number = 0")
    again = postgres_database.node("e3")
    await record(again, row(id="b"), row(id="c"))
    await again.close()
    await second.close()
    assert problems(postgres_database) == []
    postgres_database.sql(
        "DELETE FROM call WHERE chain = 0 AND seq > 1;"
        "DELETE FROM checkpoint WHERE chain = 0 AND number > (SELECT checkpoints FROM kept_head);"
        "UPDATE chain SET (last_seq, last_mac, checkpoints, at, closed, mac) = "
        "(SELECT last_seq, last_mac, checkpoints, at, closed, mac FROM kept_head) WHERE number = 0"
    )
    assert problems(postgres_database) == [(0, "missing", 3)]


async def test_changed_ends_are_found(postgres_database: PostgresDatabase, row: MakeRow) -> None:
    """The ends that a chain states cannot be changed without notice."""
    await bound(postgres_database, row)
    postgres_database.sql("UPDATE chain_binding SET ends = '[]' WHERE chain = 1")
    assert problems(postgres_database) == [(1, "changed", 0)]


async def test_a_removed_head_begins_the_chain_again(postgres_database: PostgresDatabase, row: MakeRow) -> None:
    """A node that finds no valid head does not sign the rows there: the chain begins again after them, which shows."""
    store = postgres_database.node("e1")
    await record(store, row(id="a"), row(id="b"))
    await store.close()
    postgres_database.sql("UPDATE chain SET at = at + 1")
    store = postgres_database.node("e2")
    await record(store, row(id="c"))
    await store.close()
    (findings,) = verified(postgres_database).values()
    assert [(each.fault, each.last_seq) for each in findings.problems] == [("missing", 2)]
    assert (findings.older, findings.checked) == (2, 1)


async def test_another_key_verifies_nothing(postgres_database: PostgresDatabase, row: MakeRow) -> None:
    """The key that did not sign the database is refused."""
    store = postgres_database.node("e1")
    await store.close()
    with pytest.raises(ChainKeyError):
        verified(postgres_database, b"another key, which has 32 bytes.")


async def test_retention_cleans_chains_without_a_node(postgres_database: PostgresDatabase, row: MakeRow) -> None:
    """The rows of a chain that no node extends expire, too, with a checkpoint that explains it."""
    old = time.time() - 9 * 86400
    gone, store = postgres_database.node("e1"), postgres_database.node("e2")
    await record(gone, row(id="a", started_at=old), row(id="b", started_at=old), row(id="c"))
    await record(store, row(id="x", started_at=old), row(id="y"))
    await gone.close()
    store.apply(lambda _: None, Retention(days=8))
    while len(rows := await store.audit.recent(10)) > 2:
        await store.sync()
    assert [call.id for call in rows] == ["y", "c"]
    await store.close()
    found = verified(postgres_database)
    assert [(findings.intact, findings.checkpoints["expired"].calls) for findings in found.values()] == [
        (True, 2),
        (True, 1),
    ]


async def test_the_size_limit_is_that_of_all_chains(postgres_database: PostgresDatabase, row: MakeRow) -> None:
    """Beyond the limit of all rows, the oldest of all nodes are deleted, each by the node that extends its chain."""
    first, second = postgres_database.node("e1"), postgres_database.node("e2")
    for number in range(6):
        await record(first, row(id=f"a{number}", message="x" * 10_000))
        await record(second, row(id=f"b{number}", message="x" * 10_000))
    for store in (first, second):
        store.apply(lambda _: None, Retention(bytes=65_000))
    while len(rows := await first.audit.recent(20)) > 6:
        await first.sync()
        await second.sync()
    assert sorted(call.id for call in rows) == ["a3", "a4", "a5", "b3", "b4", "b5"]
    await first.close()
    await second.close()


async def test_a_commit_whose_answer_was_lost_is_in_the_chain_once(
    postgres_database: PostgresDatabase, row: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group that had been committed before the connection was lost is neither written again nor missing."""
    store = postgres_database.node("e1")
    await record(store, row(id="a"))
    end = FencedCommits._end
    lost: list[bool] = []

    def lose_once(self: FencedCommits, chain: Any, renewed: psycopg.Cursor[Any], sent_at: float) -> None:
        if not lost:
            lost.append(True)
            renewed.connection.close()
            raise psycopg.OperationalError("the connection is lost")
        end(self, chain, renewed, sent_at)

    monkeypatch.setattr(FencedCommits, "_end", lose_once)
    store.audit.record(row(id="b"))
    await store.flush()
    while store.problem:
        await store.flush()
    await record(store, row(id="c"))
    await store.close()
    (findings,) = verified(postgres_database).values()
    assert (findings.intact, findings.checked) == (True, 3)
