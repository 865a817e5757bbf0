"""How often a source may be called: tokens, the line before them, and what does not fit into a call's time."""

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


@dataclass(frozen=True)
class Rate:
    """As a source is configured."""

    per_minute: int
    burst: int


async def say(arguments: Any, context: Any) -> str:
    return "said"


def limits(per_minute: int, burst: int) -> RateLimits:
    rates = {"crm": Rate(per_minute, burst)}
    return RateLimits(rates.get)


def soon(seconds: float = 20.0) -> float:
    return time.monotonic() + seconds


async def test_a_burst_goes_at_once_and_the_next_waits_for_its_token() -> None:
    """So many calls as the burst has; each further one when its token comes, which is smoothly."""
    bucket = limits(per_minute=600, burst=3)
    began = time.monotonic()
    for _ in range(3):
        await bucket.acquire("crm", LOCAL, soon())
    for _ in range(3):
        await bucket.acquire("crm", LOCAL, soon())
    assert time.monotonic() - began >= 3 * 0.1 - 0.05


async def test_what_does_not_fit_into_the_time_left_is_told_at_once() -> None:
    """With when to come again, and nothing executed; it costs no token."""
    bucket = limits(per_minute=2, burst=1)
    await bucket.acquire("crm", LOCAL, soon())
    for _ in range(2):
        with pytest.raises(RateLimitedError, match="is 2 calls per minute") as refused:
            await bucket.acquire("crm", LOCAL, soon(5.0))
        assert refused.value.retry_after_ms is not None
        assert 20_000 < refused.value.retry_after_ms <= 30_000
        assert refused.value.executed == "no"
        assert refused.value.retryable


async def test_who_stands_in_line_is_reckoned_with() -> None:
    """Whoever comes behind two others waits three times as long, and is told so."""
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
    """The tokens go to those who wait in the order in which they came, and nobody is passed over for one who left."""
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


async def test_each_principal_has_tokens_of_its_own_and_other_sources_none() -> None:
    """What one used up another still has; a source without a rate is not bounded."""
    bucket = limits(per_minute=1, burst=1)
    await bucket.acquire("crm", LOCAL, soon(1))
    await bucket.acquire("crm", Principal("token:ann"), soon(1))
    assert bucket.applies_to("crm")
    assert not bucket.applies_to("toold")
    for _ in range(100):
        await bucket.acquire("toold", LOCAL, soon(1))


async def test_a_rate_that_is_changed_counts_from_then_on() -> None:
    """A reload that allows more has those who come after it wait for nothing that was used up before."""
    rates = {"crm": Rate(1, 1)}
    bucket = RateLimits(rates.get)
    await bucket.acquire("crm", LOCAL, soon(1))
    rates["crm"] = Rate(1, 2)
    await bucket.acquire("crm", LOCAL, soon(1))


@given(
    burst=st.integers(1, 100), used=st.integers(0, 100), waiting=st.integers(0, 100), interval_s=st.floats(0.001, 60)
)
def test_nobody_waits_while_there_are_tokens_for_all_in_line(
    burst: int, used: int, waiting: int, interval_s: float
) -> None:
    """Else as long as it takes until there is one for each in line, and one for who arrives."""
    missing = min(used, burst) + waiting + 1 - burst
    wait_s = expected_wait_s(min(used, burst) * interval_s, waiting, interval_s=interval_s, burst=burst)
    assert wait_s == pytest.approx(max(0, missing) * interval_s)


async def test_on_the_road_it_is_asked_for_every_call_and_holds_no_permit(house: Any, make: Any) -> None:
    """A call that waits for its token leaves the only permit to others, and its wait is in its timings."""
    home = house([make("ask_crm", say, source="crm"), make("own", say)], max_running=1)
    home.rates["crm"] = Rate(300, 1)
    session = home.session()
    assert (await home.call(session, 1, "ask_crm")).ok
    home.submit(session, 2, "ask_crm")
    assert (await home.call(session, 3, "own")).ok
    assert 2 not in home.port.answers
    await home.answered()
    assert home.port.answers[2].metadata.timings.queue_ms > 100
    refused = await home.call(session, 4, "ask_crm", timeout_ms=20)
    assert refused.error.code == "RATE_LIMITED"
    assert refused.metadata.latency_ms < 150
    assert set(home.counts().values()) == {0}


async def test_what_calls_make_is_counted_too(house: Any, make: Any) -> None:
    """A child of a source waits for its token as any call does."""

    async def twice(arguments: Any, context: Any) -> list[bool]:
        return [(await context.call("ask_crm", {}, name=name, timeout_s=0.05)).ok for name in ("a", "b")]

    home = house(
        [
            make("ask_crm", say, source="crm"),
            make("compose", twice, read_only=False, open_world=True, orchestration=True),
        ]
    )
    home.rates["crm"] = Rate(1, 1)
    assert (await home.call(home.session(), 1, "compose")).structured == [True, False]


async def test_calls_that_come_before_the_first_bucket_is_made_share_it() -> None:
    """It is made in a thread: who comes meanwhile has no bucket, and no burst, of its own."""
    bucket = limits(per_minute=1, burst=2)
    taken = await asyncio.gather(*(bucket.acquire("crm", LOCAL, soon(1.0)) for _ in range(8)), return_exceptions=True)
    assert sum(one is None for one in taken) == 2
