"""The part of one node of the calls that a principal may run at once on all nodes."""

import asyncio

import pytest
from toold.daemon.cluster.node_shares import NodeShares, must_ask
from toold.daemon.dispatch import PrincipalLimit, PrincipalLimits
from toold.daemon.dispatch.budget import Budget
from toold.fairness import Permits
from toold.protocol.tool_call import Principal
from toold.store import NodeLease, boot_time

from .memory_limits import MemoryLimits, NodeLimits

CI = Principal("token:ci")


class Node:
    """One node with a token that may run three calls at once on all nodes."""

    def __init__(self, shared: MemoryLimits, name: str, max_running: int = 3) -> None:
        self.port = NodeLimits(shared, name)
        self.lease = NodeLease(300.0)
        self.lease.renewed(boot_time())
        self.shares = NodeShares(self.port, self.lease)
        self.port.on_wake = lambda limit: self.shares.wake(limit.removeprefix("running:"))
        self.limits = PrincipalLimits(Budget({}), shares=self.shares)
        self.limits.apply([PrincipalLimit(CI.name, max_running, {})])

    @property
    def permits(self) -> Permits:
        permits = self.limits.permits_of(CI)
        assert permits is not None
        return permits


class Call:
    """A call that runs until ``end`` is set."""

    def __init__(self, node: Node) -> None:
        self.end = asyncio.Event()
        self.runs = asyncio.Event()
        self.task = asyncio.create_task(self._run(node.permits))

    async def _run(self, permits: Permits) -> None:
        async with permits:
            self.runs.set()
            await self.end.wait()


async def all_look(*nodes: Node) -> None:
    for _ in range(6):
        for node in nodes:
            await node.shares.adjust()
            await asyncio.sleep(0)


async def test_a_call_waits_until_its_node_has_a_share() -> None:
    """The wait makes the node ask at once."""
    node = Node(MemoryLimits(), "a")
    running = asyncio.create_task(node.shares.run())
    async with asyncio.timeout(60):
        call = Call(node)
        await call.runs.wait()
    call.end.set()
    running.cancel()


async def test_all_nodes_together_run_as_many_as_one_may() -> None:
    """What one returns another one gets; a larger limit applies at once."""
    shared = MemoryLimits()
    a, b = Node(shared, "a"), Node(shared, "b")
    calls = [Call(node) for node in (a, a, b, b, b)]
    await asyncio.sleep(0)
    await all_look(a, b)
    assert [call.runs.is_set() for call in calls] == [True, True, True, False, False]
    calls[0].end.set()
    await all_look(a, b)
    assert a.permits.in_use + b.permits.in_use == 3
    for node in (a, b):
        node.limits.apply([PrincipalLimit(CI.name, 10, {})])
    await all_look(a, b)
    assert all(call.runs.is_set() for call in calls)
    for call in calls:
        call.end.set()
    await asyncio.gather(*(call.task for call in calls))
    await all_look(a, b)
    assert shared.shares[CI.name] == {"a": 0, "b": 0}


async def test_without_a_lease_a_node_starts_none() -> None:
    """Other nodes may use its share then. With a lease it asks again."""
    node = Node(MemoryLimits(), "a")
    first = Call(node)
    await asyncio.sleep(0)
    await node.shares.adjust()
    assert first.runs.is_set()
    node.lease._good_until = 0.0
    await node.shares.adjust()
    second = Call(node)
    await asyncio.sleep(0)
    await node.shares.adjust()
    assert (second.runs.is_set(), node.permits.limit) == (False, 0)
    node.lease.renewed(boot_time())
    await node.shares.adjust()
    await asyncio.sleep(0)
    assert second.runs.is_set()
    for call in (first, second):
        call.end.set()


async def test_without_the_database_no_more_calls_run_than_before() -> None:
    """It is not known whether the share was changed."""
    node = Node(MemoryLimits(), "a")
    first = Call(node)
    await asyncio.sleep(0)
    await node.shares.adjust()
    node.port.away = True
    second = Call(node)
    await asyncio.sleep(0)
    await node.shares.adjust()
    assert (first.runs.is_set(), second.runs.is_set()) == (True, False)
    node.port.away = False
    await node.shares.adjust()
    await asyncio.sleep(0)
    assert second.runs.is_set()
    for call in (first, second):
        call.end.set()


async def test_a_limit_that_is_removed_frees_the_calls_that_wait() -> None:
    """Open sessions keep their permits, with the limit that they had, without the other nodes."""
    node = Node(MemoryLimits(), "a")
    permits = node.permits
    call = Call(node)
    await asyncio.sleep(0)
    node.limits.apply([])
    await asyncio.sleep(0)
    assert (call.runs.is_set(), permits.limit) == (True, 3)
    call.end.set()


@pytest.mark.parametrize(
    ("state", "asks"),
    [
        ({"wants": 2, "held": 2, "part": 2, "in_use": 2, "asked": False}, False),
        ({"wants": 3, "held": 2, "part": 2, "in_use": 2, "asked": False}, True),
        ({"wants": 1, "held": 2, "part": 2, "in_use": 1, "asked": False}, True),
        ({"wants": 2, "held": 2, "part": 1, "in_use": 2, "asked": False}, False),
        ({"wants": 2, "held": 2, "part": 1, "in_use": 1, "asked": False}, True),
        ({"wants": 2, "held": 2, "part": 2, "in_use": 2, "asked": True}, True),
    ],
)
def test_the_database_is_asked_only_for_a_change(state: dict[str, int], asks: bool) -> None:
    """For more, to return some, to give back what others want, and when they ask."""
    assert must_ask(**state) is asks  # type: ignore[arg-type] # mypy sees int for asked
