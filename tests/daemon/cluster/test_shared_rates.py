"""Rates of sources and quotas of calls that all nodes count together, as calls find them."""

import asyncio
import time
from typing import NamedTuple

import pytest
from toold.daemon.dispatch import CallQuota, RateLimits
from toold.daemon.dispatch.call_quotas import CallQuotas
from toold.protocol.error_codes import RateLimitedError, ServiceUnavailableError
from toold.protocol.tool_call import LOCAL

from .memory_limits import MemoryLimits, NodeLimits


class Rate(NamedTuple):
    per_minute: int
    burst: int


async def test_a_call_waits_for_the_slot_that_it_has_reserved() -> None:
    """With the calls of the other node before it. One that would wait beyond its deadline is refused at once."""
    shared, rate = MemoryLimits(), Rate(per_minute=1200, burst=2)
    nodes = [RateLimits(lambda _: rate, NodeLimits(shared, name)) for name in "ab"]
    start = time.monotonic()
    await asyncio.gather(*(nodes[number % 2].acquire("crm", LOCAL, start + 60) for number in range(6)))
    assert time.monotonic() - start >= 4 * 0.05
    state = await nodes[0].state("crm", LOCAL)
    assert state is not None
    assert (state.per_minute, state.burst) == (1200, 2)
    shared.due["crm", LOCAL.name] = time.monotonic() + 1000
    with pytest.raises(RateLimitedError, match="rate limit of source crm is 1200 calls per minute"):
        await nodes[1].acquire("crm", LOCAL, time.monotonic() + 60)


async def test_a_call_is_counted_at_all_nodes() -> None:
    """And those of the day that were made before the nodes had a database together."""
    shared, quota = MemoryLimits(), CallQuota("q", ("e*",), ("*",), None, 2)
    nodes = [CallQuotas([quota], shared=NodeLimits(shared, name)) for name in "ab"]
    assert [await node.take("echo", "local") for node in nodes] == [None, None]
    refused = await nodes[0].take("echo", "local")
    assert isinstance(refused, RateLimitedError)
    assert "Your quota q of 2 calls per day (UTC) for e* is used up" in refused.message
    assert await nodes[0].take("version", "local") is None


async def test_without_the_database_a_limited_call_is_refused() -> None:
    """As not executed: nothing may exceed a limit."""
    port = NodeLimits(MemoryLimits(), "a")
    port.away = True
    refused = await CallQuotas([CallQuota("q", ("*",), ("*",), 1, None)], shared=port).take("echo", "local")
    assert isinstance(refused, ServiceUnavailableError)
    assert refused.executed == "no"
    rates = RateLimits(lambda _: Rate(60, 1), port)
    with pytest.raises(ServiceUnavailableError, match="cannot be counted for the rate limit of source crm"):
        await rates.acquire("crm", LOCAL, time.monotonic() + 60)
    assert await rates.state("crm", LOCAL) is None
