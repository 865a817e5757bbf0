"""Bytes that are held for clients: the limits of a session, a principal and the daemon."""

import asyncio
from typing import Any

from toold.daemon.dispatch import ByteLimits, HeldBytes
from toold.protocol.tool_call import Principal

LIMITS = ByteLimits(session=100, principal=150, daemon=200)
ONE, TWO = Principal("one"), Principal("two")


def held() -> HeldBytes:
    return HeldBytes(lambda: LIMITS)


async def test_each_level_has_its_limit(make_harness: Any) -> None:
    """What exceeds the limit of a session, its principal or the daemon is named."""
    harness, some = make_harness(), held()
    first, second, other = harness.session(), harness.session(), harness.session(principal=ONE)
    some.add(first, 90)
    assert some.exceeded(first, 10) is None
    assert some.exceeded(first, 11) == "this session (100 bytes)"
    assert some.exceeded(second, 60) is None
    assert some.exceeded(second, 61) == "this principal (150 bytes)"
    some.add(other, 100)
    assert some.exceeded(harness.session(principal=TWO), 11) == "the daemon (200 bytes)"
    for session, size in ((first, 90), (other, 100)):
        some.remove(session, size)
    assert (some.total, some.exceeded(first, 100)) == (0, None)


async def test_a_single_one_always_fits(make_harness: Any) -> None:
    """Otherwise a limit below the size of a frame would exclude it forever."""
    harness, some = make_harness(), held()
    session = harness.session()
    assert some.exceeded(session, 1000) is None
    some.add(session, 1000)
    assert some.exceeded(session, 1) is not None


async def test_waiting_for_room(make_harness: Any) -> None:
    """A waiter continues as soon as its bytes fit."""
    harness, some = make_harness(), held()
    session = harness.session()
    some.add(session, 60)
    with some.holding(session, 40):
        waiter = asyncio.create_task(some.wait_until_fits(session, 45))
        await asyncio.sleep(0)
        some.remove(session, 5)
        await asyncio.sleep(0)
        assert not waiter.done()
    await asyncio.wait_for(waiter, 20)
