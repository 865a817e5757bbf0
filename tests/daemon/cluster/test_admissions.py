"""Permits and budgets of all nodes, as one node asks for them."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest
from toold.daemon.cluster import admissions as module
from toold.daemon.cluster.admissions import ClusterAdmission, ClusterAdmissions
from toold.daemon.dispatch import Budget
from toold.protocol.error_codes import BudgetSpentError, ServiceUnavailableError
from toold.protocol.tool_call import Cost
from toold.store import NodeLease, boot_time

from .memory_limits import MemoryLimits, NodeLimits


class Node:
    """One node, with the budget of all calls."""

    def __init__(self, shared: MemoryLimits, name: str) -> None:
        self.port = NodeLimits(shared, name)
        self.lease = NodeLease(300.0)
        self.lease.renewed(boot_time())
        self.budget = Budget({"USD": 10.0})
        self.admissions = ClusterAdmissions(self.port, self.lease, lambda: [self.budget])
        self.port.on_wake = lambda limit: self.admissions.wake(limit.removeprefix("provider:"))

    def admission(self, *, permits: int = 1, estimate: float | None = None) -> ClusterAdmission:
        cost = None if estimate is None else Cost(estimate, "USD")
        return self.admissions.admission("glm", permits, [self.budget], cost)

    async def ask(self, *, cost: float = 0.0, permits: int = 1, estimate: float | None = None) -> None:
        """A request that costs this."""
        admission = self.admission(permits=permits, estimate=estimate)
        try:
            async with admission:
                await asyncio.sleep(0)
                admission.spend(Cost(cost, "USD"))
        finally:
            admission.close()


@pytest.fixture
def shared() -> MemoryLimits:
    return MemoryLimits()


@pytest.fixture
def make_node(shared: MemoryLimits, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Node]:
    """Nodes that wait for permits until they are woken."""
    monkeypatch.setattr(module, "ASK_AGAIN_S", 3600.0)
    monkeypatch.setattr(module, "_SETTLE_AGAIN_S", 0.001)
    monkeypatch.setattr(module, "_CHECKED_LATER_S", 0.001)
    return lambda name: Node(shared, name)


async def settled(shared: MemoryLimits) -> None:
    """Until no request holds a permit."""
    while shared.running:
        await asyncio.sleep(0.001)


async def test_requests_of_all_nodes_take_turns(make_node: Callable[[str], Node], shared: MemoryLimits) -> None:
    """Each that waits is woken by the one that returns its permit; each cost is booked once."""
    nodes, peak = [make_node(name) for name in "abc"], 0

    async def watch() -> None:
        nonlocal peak
        while True:
            peak = max(peak, len(shared.running))
            await asyncio.sleep(0)

    watching = asyncio.create_task(watch())
    async with asyncio.timeout(60):
        await asyncio.gather(*(node.ask(cost=0.125, permits=2) for node in nodes for _ in range(5)))
        await settled(shared)
    watching.cancel()
    assert (peak, shared.spent["", "USD"]) == (2, 15 * 0.125)
    assert not any(shared.line.values())


async def test_a_refusal_does_not_wait_for_its_turn(make_node: Callable[[str], Node]) -> None:
    """Even while others wait for a permit; and the message says what all nodes have spent and reserved."""
    a, b = make_node("a"), make_node("b")
    held = a.admission(estimate=8.0)
    await held.__aenter__()
    second = b.admission(estimate=1.0)
    waiting = asyncio.create_task(second.__aenter__())
    await second.tried.wait()
    with pytest.raises(BudgetSpentError, match="running calls have reserved the rest of today's 10 USD") as refused:
        await b.ask(estimate=5.0)
    assert refused.value.details is not None
    assert refused.value.details["reserved"] == {"USD": 8.0}
    assert b.budget.state()["reserved"] == {"USD": 8.0}
    assert not waiting.done()
    await held.__aexit__(None, None, None)
    held.close()
    async with asyncio.timeout(60):
        await waiting


async def test_a_permit_is_returned_once_the_request_has_ended_and_its_cost_is_known(
    make_node: Callable[[str], Node], shared: MemoryLimits
) -> None:
    """In either order; one statement does both."""
    node = make_node("a")
    for ends_first in (True, False):
        admission = node.admission()
        await admission.__aenter__()
        admission.spend(Cost(1.0, "USD"))
        if ends_first:
            await admission.__aexit__(None, None, None)
        else:
            admission.close()
        await asyncio.sleep(0.01)
        assert len(shared.running) == 1
        if ends_first:
            admission.close()
        else:
            await admission.__aexit__(None, None, None)
        await settled(shared)
    assert shared.spent["", "USD"] == 2.0


async def test_a_request_that_is_given_up_leaves_no_permit(
    make_node: Callable[[str], Node], shared: MemoryLimits
) -> None:
    """Neither while the database is asked, nor while it waits; the node leaves the line if no other request waits."""
    a, b = make_node("a"), make_node("b")
    asking = asyncio.create_task(a.ask(permits=1))
    await asyncio.sleep(0)  # its statement is sent
    asking.cancel()
    await settled(shared)
    held = a.admission()
    await held.__aenter__()
    waiting = [asyncio.create_task(b.ask()) for _ in range(2)]
    while not shared.line["glm"]:
        await asyncio.sleep(0)
    waiting[0].cancel()
    with suppress(asyncio.CancelledError):
        await waiting[0]
    await asyncio.sleep(0.01)
    assert shared.line["glm"] == ["b"]
    waiting[1].cancel()
    async with asyncio.timeout(60):
        while shared.line["glm"]:
            await asyncio.sleep(0.001)


async def test_without_the_database_nothing_is_asked(make_node: Callable[[str], Node], shared: MemoryLimits) -> None:
    """The call was not executed. What has ended is settled when the database is back."""
    node = make_node("a")
    admission = node.admission()
    await admission.__aenter__()
    node.port.away = True
    with pytest.raises(ServiceUnavailableError, match="The vendor was not asked") as refused:
        await node.ask(permits=2)
    assert refused.value.executed == "no"
    await admission.__aexit__(None, None, None)
    admission.spend(Cost(1.0, "USD"))
    admission.close()
    await asyncio.sleep(0.01)
    assert shared.running
    node.port.away = False
    await settled(shared)
    assert shared.spent["", "USD"] == 1.0


async def test_a_node_without_a_lease_asks_no_vendor(make_node: Callable[[str], Node], shared: MemoryLimits) -> None:
    """It may have been stopped for long: other nodes may use its permits now."""
    node = make_node("a")
    node.lease.fence("another node has declared this one dead")
    with pytest.raises(ServiceUnavailableError):
        await node.ask()
    await settled(shared)


async def test_lost_permits_are_returned(make_node: Callable[[str], Node], shared: MemoryLimits) -> None:
    """Those whose statement had no response, but was executed. And the daemon shows what all nodes have spent."""
    node = make_node("a")
    shared.admit("a", node.admission(estimate=1.0).request, may_take=True)
    held = node.admission(permits=2)
    await held.__aenter__()
    running = asyncio.create_task(node.admissions.run())
    async with asyncio.timeout(60):
        while len(shared.running) > 1:
            await asyncio.sleep(0.001)
        shared.spent["", "USD"] = 4.0
        while node.budget.state()["spent"] != {"USD": 4.0}:
            await asyncio.sleep(0.001)
    assert list(shared.running) == [held.request.id]
    running.cancel()


async def test_the_end_of_a_node_waits_for_what_is_not_settled(
    make_node: Callable[[str], Node], shared: MemoryLimits
) -> None:
    """But not for long, if the database is away."""
    node = make_node("a")
    await node.ask(cost=1.0)
    await node.admissions.close(60)
    assert shared.spent["", "USD"] == 1.0
    other = make_node("b")
    held = other.admission()
    await held.__aenter__()
    other.port.away = True
    await held.__aexit__(None, None, None)
    held.close()
    await other.admissions.close(0.01)
    assert len(shared.running) == 1
