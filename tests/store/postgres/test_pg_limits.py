"""Permits of providers and budgets of all nodes, on a real database."""

import asyncio
import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.daemon.cluster.memory_limits import MemoryLimits
from tests.postgres_cluster import Cluster
from tests.store.postgres.conftest import OpenNode
from tests.store.postgres_databases import PostgresDatabase, new_database
from toold.protocol.tool_call import Cost
from toold.store import AdmitDecision, AdmitRequest, BudgetLimit, SharedLimitsPort, Store, StoreError

_ids = itertools.count(1)


def request(
    *,
    provider: str = "glm",
    permits: int = 2,
    estimate: float | None = None,
    amount: float | None = None,
    **fields: Any,
) -> AdmitRequest:
    """A request that counts for the budget of all calls, of ``amount`` dollars."""
    limits = () if amount is None else (BudgetLimit("", "USD", amount, 0.0),)
    cost = None if estimate is None else Cost(estimate, "USD")
    values = {"scopes": ("",), "limits": limits, "estimate": cost} | fields
    return AdmitRequest(id=next(_ids), provider=provider, permits=permits, **values)


def limits_of(store: Store) -> SharedLimitsPort:
    assert store.cluster is not None
    return store.cluster.limits


async def decision(node: SharedLimitsPort, wanted: AdmitRequest, *, may_take: bool = True) -> AdmitDecision:
    return (await node.admit(wanted, may_take=may_take)).decision


def keep_turns(database: PostgresDatabase) -> None:
    """A node that waits keeps its turn, however long this machine takes between two of its questions."""
    database.sql("""
        CREATE FUNCTION keep_turn() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN NEW.asked_at := 'infinity'; RETURN NEW; END $$;
        CREATE TRIGGER keep_turn BEFORE INSERT OR UPDATE ON permit_wait FOR EACH ROW EXECUTE FUNCTION keep_turn();
    """)


async def declare_dead(by: Store, epoch: str) -> None:
    assert by.cluster is not None
    assert await by.cluster.declare_dead(epoch, "unreachable")


async def test_a_limit_counts_the_requests_of_all_nodes(
    open_node: OpenNode, postgres_database: PostgresDatabase
) -> None:
    """Another provider has its own; a permit that is returned goes to the node that has waited longest, in turn."""
    keep_turns(postgres_database)
    a, b, c = (limits_of(open_node(name)) for name in "abc")
    first, second = request(), request()
    assert [await decision(a, first), await decision(b, second)] == ["admitted", "admitted"]
    assert [await decision(node, request()) for node in (c, a, b)] == ["busy"] * 3
    assert await decision(a, request(provider="kimi")) == "admitted"
    await a.settle(first.id, None)
    assert [await decision(node, request()) for node in (b, a, c)] == ["busy", "busy", "admitted"]
    await b.settle(second.id, None)
    assert [await decision(node, request()) for node in (b, a)] == ["busy", "admitted"]


async def test_a_repeated_statement_changes_nothing(open_node: OpenNode) -> None:
    """After a lost connection the node does not know whether it was executed, so it sends it again."""
    node, wanted = limits_of(open_node("a")), request(permits=1, estimate=1.0, amount=10.0)
    assert [await decision(node, wanted) for _ in range(2)] == ["admitted", "admitted"]
    assert await node.held() == {wanted.id}
    for _ in range(2):
        await node.settle(wanted.id, Cost(2.0, "USD"))
    assert [(use.spent, use.reserved) for use in await node.budget_uses()] == [(2.0, 0.0)]
    assert await node.held() == frozenset()


async def test_a_budget_counts_what_all_nodes_spend_and_reserve(open_node: OpenNode) -> None:
    """A request that does not fit next to the reservations is refused, as is any request once it is spent."""
    a, b = limits_of(open_node("a")), limits_of(open_node("b"))
    first = request(estimate=6.0, amount=10.0)
    assert await decision(a, first) == "admitted"
    refused = await b.admit(request(estimate=5.0, amount=10.0), may_take=True)
    assert (refused.decision, [(use.spent, use.reserved) for use in refused.uses]) == ("refused", [(0.0, 6.0)])
    assert await decision(b, request(estimate=5.0, amount=10.0), may_take=False) == "refused"
    await a.settle(first.id, Cost(3.0, "USD"))
    second = request(estimate=7.0, amount=10.0)
    assert await decision(b, second) == "admitted"
    await b.settle(second.id, Cost(7.0, "USD"))
    assert await decision(a, request(amount=10.0)) == "refused"
    assert await decision(a, request(amount=11.0)) == "admitted"


async def test_a_budget_begins_with_what_the_audit_has_of_the_day(
    open_node: OpenNode, postgres_database: PostgresDatabase
) -> None:
    """Such as that of the embedded database, which was copied."""
    node = limits_of(open_node("a"))
    postgres_database.sql(
        "INSERT INTO day_spent (chain, day, principal, tool, agent, provider, model, simulated, currency, completions, "
        "input_tokens, output_tokens, cached_tokens, cost, estimated) "
        "SELECT 0, budget_day(), 'token:ci', 'chat', 'a', provider, 'm', false, 'USD', 1, 1, 1, 0, 2, 0 "
        "FROM unnest(ARRAY['glm', 'kimi']) AS provider"
    )
    scopes = ("", "provider:glm", "principal:token:ci", "principal:other", "agent:a", "agent:b")
    known = {"agent:a": 0.25, "agent:b": 0.5}
    limits = tuple(BudgetLimit(scope, "USD", 100.0, known.get(scope, 0.0)) for scope in scopes)
    answer = await node.admit(request(scopes=scopes, limits=limits), may_take=True)
    spent = {use.scope: use.spent for use in answer.uses}
    assert spent == dict(zip(scopes, (4.0, 2.0, 4.0, 0.0, 4.0, 0.5), strict=True))


async def test_a_dead_node_gives_its_permits_back_and_its_reservations_are_spent(
    open_node: OpenNode, postgres_database: PostgresDatabase
) -> None:
    """What its requests cost is unknown. It gets no more permits, and its place in the line is gone."""
    dead, other = open_node("dead"), open_node("other")
    assert await decision(limits_of(dead), request(permits=1, estimate=2.0, amount=10.0)) == "admitted"
    assert await decision(limits_of(dead), request(permits=1)) == "busy"
    assert await decision(limits_of(other), request(permits=1)) == "busy"
    await declare_dead(other, "dead")
    with pytest.raises(StoreError, match="declared this one dead"):
        await limits_of(dead).admit(request(), may_take=True)
    assert await decision(limits_of(other), request(permits=1)) == "admitted"
    assert [(use.spent, use.reserved) for use in await limits_of(other).budget_uses()] == [(2.0, 0.0)]
    assert postgres_database.sql("SELECT count(*) FROM vendor_request WHERE node = 'dead'") == "0"


async def test_a_node_that_does_not_ask_again_loses_its_turn(
    open_node: OpenNode, postgres_database: PostgresDatabase
) -> None:
    """After two seconds: it may be stopped, and others must not wait for it."""
    a, b = limits_of(open_node("a")), limits_of(open_node("b"))
    held = request(permits=1)
    assert [await decision(a, held), await decision(b, request(permits=1))] == ["admitted", "busy"]
    await a.settle(held.id, None)
    postgres_database.sql("UPDATE permit_wait SET asked_at = asked_at - interval '3 seconds'")
    assert await decision(a, request(permits=1)) == "admitted"


async def test_the_node_that_waits_longest_is_woken(open_node: OpenNode, postgres_database: PostgresDatabase) -> None:
    """When a permit is returned, and when the node before it leaves the line."""
    keep_turns(postgres_database)
    a, b, c = (limits_of(open_node(name)) for name in "abc")
    woken: dict[str, asyncio.Event] = {}
    async with asyncio.timeout(60):
        for name, node in (("b", b), ("c", c)):
            woken[name] = asyncio.Event()
            node.on_wake = lambda _, event=woken[name]: event.set()  # type: ignore[misc] # mypy knows no default here
            node.start()
            while not woken[name].is_set():  # until it listens
                postgres_database.sql(f"SELECT pg_notify('toold_limits', '{name} any')")
                await asyncio.sleep(0.01)
            woken[name].clear()
        held = request(permits=1)
        assert [await decision(node, each) for node, each in ((a, held), (b, request(permits=1)))] == [
            "admitted",
            "busy",
        ]
        assert await decision(c, request(permits=1)) == "busy"
        await a.settle(held.id, None)
        await woken["b"].wait()
        assert not woken["c"].is_set()
        await b.withdraw("glm")
        await woken["c"].wait()


@pytest.fixture(scope="module")
def model_database(cluster: Cluster, postgres_template: str) -> Iterator[PostgresDatabase]:
    with new_database(cluster, postgres_template) as database:
        keep_turns(database)
        yield database


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["admit", "admit", "admit", "ask", "settle", "settle", "again", "withdraw", "kill"]),
        st.integers(0, 2),
        st.integers(1, 4),
    ),
    min_size=10,
    max_size=30,
)
_epochs = itertools.count()


@given(_STEPS)
@settings(max_examples=6)
def test_random_steps_of_nodes_exceed_no_limit(
    model_database: PostgresDatabase, steps: list[tuple[str, int, int]]
) -> None:
    """Three nodes admit, settle and die at random: the database decides as the model does, and in each state the
    permits and the budget are within their limits.
    """
    asyncio.run(_compare(model_database, steps))


async def _compare(database: PostgresDatabase, steps: list[tuple[str, int, int]]) -> None:
    database.sql("TRUNCATE vendor_request, permit_wait, budget")
    model, nodes, declarer = MemoryLimits(), [_start(database) for _ in range(3)], _start(database)
    sent: list[AdmitRequest] = []
    try:
        for number, (step, index, size) in enumerate(steps):
            epoch, store = nodes[index]
            port = limits_of(store)
            if step in {"admit", "ask", "again"}:
                wanted = request(estimate=size / 4, amount=4.0) if step != "again" or not sent else sent[-1]
                if step == "again" and sent and model.running.get(wanted.id, (epoch,))[0] != epoch:
                    continue
                sent.append(wanted)
                answer = await port.admit(wanted, may_take=step != "ask")
                expected = model.admit(epoch, wanted, may_take=step != "ask")
                assert answer.decision == expected.decision, (number, step)
            elif step == "settle" and model.running:
                ended = sorted(model.running)[size % len(model.running)]
                cost = Cost(size / 8, "USD")
                await port.settle(ended, cost)
                model.settle(ended, cost)
            elif step == "withdraw":
                await port.withdraw("glm")
                if epoch in model.line["glm"]:
                    model.line["glm"].remove(epoch)
            elif step == "kill":
                await declare_dead(declarer[1], epoch)
                model.free(epoch)
                await store.close()
                nodes[index] = _start(database)
            in_use = sum([len(await limits_of(each).held()) for _, each in nodes])
            uses = {use.scope: use for use in await limits_of(declarer[1]).budget_uses()}
            assert in_use == model.in_use("glm") <= 2
            if "" in uses:
                assert (uses[""].spent, uses[""].reserved) == (model.spent["", "USD"], model.reserved("", "USD"))
                assert uses[""].spent + uses[""].reserved <= 4.0
    finally:
        for _, store in (*nodes, declarer):
            await store.close()


def _start(database: PostgresDatabase) -> tuple[str, Store]:
    epoch = f"m{next(_epochs)}"
    return epoch, database.node(epoch)


async def test_concurrent_nodes_never_exceed_the_limits(
    open_node: OpenNode, postgres_database: PostgresDatabase
) -> None:
    """Three nodes ask at the same time, and one dies: never more than the permits run, and no more than the budget is
    spent, to the cent.
    """
    stores = [open_node(name) for name in "abc"]
    running, peak, spent = 0, 0, 0.0
    draw = random.Random(1)  # noqa: S311 - a repeatable run

    async def work(node: SharedLimitsPort) -> None:
        nonlocal running, peak, spent
        while True:
            wanted = request(permits=3, estimate=0.25, amount=20.0)
            answer = await node.admit(wanted, may_take=True)
            if answer.decision == "refused":
                return
            if answer.decision == "busy":
                await asyncio.sleep(0.002)
                continue
            running += 1
            peak = max(peak, running)
            await asyncio.sleep(draw.random() / 500)
            cost = draw.choice([0.125, 0.25])
            spent += cost
            running -= 1
            await node.settle(wanted.id, Cost(cost, "USD"))

    async with asyncio.timeout(120):
        await asyncio.gather(*(work(limits_of(store)) for store in stores for _ in range(4)))
    (use,) = await limits_of(stores[0]).budget_uses()
    assert (peak, running) == (3, 0)
    assert use.spent == spent <= 20.0
    assert postgres_database.sql("SELECT count(*) FROM vendor_request") == "0"
