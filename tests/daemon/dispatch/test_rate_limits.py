"""Rate limits of sources: tokens, the queue before them, and waits beyond a call's deadline."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.daemon.dispatch.rate_limits import RateLimits, expected_wait_s
from toold.protocol.error_codes import RateLimitedError
from toold.protocol.tool_call import LOCAL, Principal
from toold.tools import RateState

from .scripted_tools import say


@dataclass(frozen=True)
class Rate:
    """As a source is configured."""

    per_minute: int
    burst: int


def limits(per_minute: int, burst: int) -> RateLimits:
    rates = {"crm": Rate(per_minute, burst)}
    return RateLimits(rates.get)


def soon(seconds: float = 20.0) -> float:
    return time.monotonic() + seconds


async def test_a_burst_passes_and_the_next_call_waits_for_a_token() -> None:
    """After the burst each call waits for its token; tokens arrive evenly."""
    bucket = limits(per_minute=600, burst=3)
    began = time.monotonic()
    for _ in range(3):
        await bucket.acquire("crm", LOCAL, soon())
    for _ in range(3):
        await bucket.acquire("crm", LOCAL, soon())
    assert time.monotonic() - began >= 3 * 0.1 - 0.05


async def test_a_wait_beyond_the_deadline_is_refused_at_once() -> None:
    """With ``retry_after_ms`` and nothing executed; it costs no token."""
    bucket = limits(per_minute=2, burst=1)
    await bucket.acquire("crm", LOCAL, soon())
    for _ in range(2):
        with pytest.raises(RateLimitedError, match="is 2 calls per minute") as refused:
            await bucket.acquire("crm", LOCAL, soon(5.0))
        assert refused.value.retry_after_ms is not None
        assert 20_000 < refused.value.retry_after_ms <= 30_000
        assert refused.value.executed == "no"
        assert refused.value.retryable


async def test_queued_calls_count() -> None:
    """A call behind two others waits three times as long, and the error says so."""
    bucket = limits(per_minute=6, burst=1)
    await bucket.acquire("crm", LOCAL, soon())
    waiting = [asyncio.create_task(bucket.acquire("crm", LOCAL, soon(1000))) for _ in range(2)]
    await asyncio.sleep(0.01)
    with pytest.raises(RateLimitedError) as refused:
        await bucket.acquire("crm", LOCAL, soon(15))
    assert refused.value.retry_after_ms is not None
    assert 25_000 < refused.value.retry_after_ms <= 30_000
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_first_come_first_served() -> None:
    """Tokens go to waiting calls in order of arrival, even if one of them leaves."""
    bucket = limits(per_minute=3000, burst=1)
    served: list[int] = []

    async def one(number: int) -> None:
        await bucket.acquire("crm", LOCAL, soon())
        served.append(number)

    await one(-1)
    tasks = [asyncio.create_task(one(number)) for number in range(8)]
    await asyncio.sleep(0)
    tasks[2].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert served == [-1, 0, 1, 3, 4, 5, 6, 7]


async def test_each_principal_has_its_own_tokens() -> None:
    """One principal's use does not affect another's; a source without a rate is not limited."""
    bucket = limits(per_minute=1, burst=1)
    await bucket.acquire("crm", LOCAL, soon(1))
    await bucket.acquire("crm", Principal("token:ann"), soon(1))
    assert bucket.applies_to("crm")
    assert not bucket.applies_to("toold")
    for _ in range(100):
        await bucket.acquire("toold", LOCAL, soon(1))


async def test_the_state_of_a_limit_is_known() -> None:
    """Free tokens and the wait of a new call, for each principal; reading it costs no token."""
    bucket = limits(per_minute=2, burst=3)
    assert await bucket.state("toold", LOCAL) is None
    assert await bucket.state("crm", LOCAL) == RateState(2, 3, 3, 0)
    for _ in range(2):
        await bucket.acquire("crm", LOCAL, soon())
        await bucket.state("crm", LOCAL)
    assert await bucket.state("crm", LOCAL) == RateState(2, 3, 1, 0)
    assert await bucket.state("crm", Principal("token:ann")) == RateState(2, 3, 3, 0)
    await bucket.acquire("crm", LOCAL, soon())
    waiting = asyncio.create_task(bucket.acquire("crm", LOCAL, soon(1000)))
    await asyncio.sleep(0.01)
    state = await bucket.state("crm", LOCAL)
    assert state is not None
    assert (state.tokens, 50_000 < state.wait_ms <= 60_000) == (0, True)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_an_orchestration_tool_sees_the_state(make_harness: Any, make_tool: Any) -> None:
    """That of its principal at the source of the given tool."""

    async def asks(arguments: Any, context: Any) -> list[Any]:
        await context.call("ask_crm", {}, name="a")
        return [await context.rate_state(context.find_tool(name)) for name in ("ask_crm", "own")]

    compose = make_tool("compose", asks, read_only=False, open_world=True, orchestration=True)
    harness = make_harness([make_tool("ask_crm", say, source="crm"), make_tool("own", say), compose])
    harness.rates["crm"] = Rate(1, 5)
    answer = await harness.call(harness.session(), 1, "compose")
    assert answer.structured == [{"per_minute": 1, "burst": 5, "tokens": 4, "wait_ms": 0}, None]


async def test_a_changed_rate_applies_to_new_calls() -> None:
    """After a reload with a higher rate, new calls do not wait for tokens used before."""
    rates = {"crm": Rate(1, 1)}
    bucket = RateLimits(rates.get)
    await bucket.acquire("crm", LOCAL, soon(1))
    rates["crm"] = Rate(1, 2)
    await bucket.acquire("crm", LOCAL, soon(1))


@given(
    burst=st.integers(1, 100), used=st.integers(0, 100), waiting=st.integers(0, 100), interval_s=st.floats(0.001, 60)
)
def test_no_call_waits_while_there_are_enough_tokens(burst: int, used: int, waiting: int, interval_s: float) -> None:
    """Otherwise it waits until there is a token for each queued call and one for itself."""
    missing = min(used, burst) + waiting + 1 - burst
    wait_s = expected_wait_s(min(used, burst) * interval_s, waiting, interval_s=interval_s, burst=burst)
    assert wait_s == pytest.approx(max(0, missing) * interval_s)


async def test_a_call_that_waits_for_a_token_holds_no_permit(make_harness: Any, make_tool: Any) -> None:
    """Other calls use the only permit meanwhile, and the wait is part of its timings."""
    harness = make_harness([make_tool("ask_crm", say, source="crm"), make_tool("own", say)], max_running=1)
    harness.rates["crm"] = Rate(300, 1)
    session = harness.session()
    assert (await harness.call(session, 1, "ask_crm")).ok
    harness.submit(session, 2, "ask_crm")
    assert (await harness.call(session, 3, "own")).ok
    assert 2 not in harness.port.answers
    await harness.answered()
    assert harness.port.answers[2].metadata.timings.queue_ms > 100
    refused = await harness.call(session, 4, "ask_crm", timeout_ms=20)
    assert refused.error.code == "RATE_LIMITED"
    assert refused.metadata.latency_ms < 150
    assert set(harness.counts().values()) == {0}


async def test_child_calls_need_tokens_too(make_harness: Any, make_tool: Any) -> None:
    """A child call to a source waits for its token like any call."""

    async def twice(arguments: Any, context: Any) -> list[bool]:
        timeouts = {"a": 30, "b": 0.05}
        return [(await context.call("ask_crm", {}, name=name, timeout_s=timeouts[name])).ok for name in timeouts]

    harness = make_harness(
        [
            make_tool("ask_crm", say, source="crm"),
            make_tool("compose", twice, read_only=False, open_world=True, orchestration=True),
        ]
    )
    harness.rates["crm"] = Rate(1, 1)
    assert (await harness.call(harness.session(), 1, "compose")).structured == [True, False]


async def test_concurrent_first_calls_share_one_bucket() -> None:
    """It is created in a thread; concurrent callers do not get their own bucket and burst."""
    bucket = limits(per_minute=1, burst=2)
    taken = await asyncio.gather(*(bucket.acquire("crm", LOCAL, soon(1.0)) for _ in range(8)), return_exceptions=True)
    assert sum(item is None for item in taken) == 2
