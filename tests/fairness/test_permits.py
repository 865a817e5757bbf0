"""Permits: never more than the limit, and always released."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toold.fairness import Permits, RunPermit


async def test_at_most_the_limit_run_and_the_rest_wait_in_order() -> None:
    """First come, first served."""
    permits = Permits("test", 2)
    order: list[int] = []
    peak = 0

    async def work(number: int) -> None:
        nonlocal peak
        async with permits:
            peak = max(peak, permits.in_use)
            await asyncio.sleep(0)
            order.append(number)

    await asyncio.gather(*(work(number) for number in range(6)))
    assert peak == 2
    assert order == sorted(order)
    assert (permits.in_use, permits.waiting) == (0, 0)


async def test_a_waiter_cancelled_on_release_gets_no_permit() -> None:
    """Both in one loop iteration: the wait is cancelled, and the permit is free."""
    permits = Permits("test", 1)
    release = asyncio.Event()

    async def hold() -> None:
        async with permits:
            await release.wait()

    holder, waiter = asyncio.create_task(hold()), asyncio.create_task(hold())
    while not permits.waiting:
        await asyncio.sleep(0)
    release.set()
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    await holder
    assert (permits.in_use, permits.waiting) == (0, 0)


async def test_the_repr_shows_the_state() -> None:
    """Name, permits in use, limit and waiters."""
    async with Permits("running", 3) as permits:
        assert repr(permits) == "<Permits running in_use=1/3 waiting=0>"


async def test_a_run_permit_is_both_or_neither() -> None:
    """A call that is cancelled while it waits for the daemon's permit releases its session's."""
    session, daemon = Permits("session", 8), Permits("running", 1)
    async with daemon:
        task = asyncio.create_task(RunPermit(session, daemon).__aenter__())
        await asyncio.sleep(0)
        assert (session.in_use, daemon.waiting) == (1, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (session.in_use, daemon.in_use, daemon.waiting) == (0, 0, 0)


async def test_a_pause_releases_and_reacquires_the_permit() -> None:
    """While a call waits for something else, another one runs; it continues when a permit is free."""
    session, daemon = Permits("session", 1), Permits("running", 1)
    async with RunPermit(session, daemon) as permit:
        async with permit.paused():
            assert (session.in_use, daemon.in_use) == (0, 0)
            async with RunPermit(session, daemon):
                pass
        assert permit.held
        assert (session.in_use, daemon.in_use) == (1, 1)
    assert (session.in_use, daemon.in_use) == (0, 0)


async def test_a_pause_that_raises_holds_nothing() -> None:
    """A call that is cancelled during its pause releases nothing twice."""
    session, daemon = Permits("session", 1), Permits("running", 1)

    async def fail_in_pause() -> None:
        async with RunPermit(session, daemon) as permit, permit.paused():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_in_pause()
    assert (session.in_use, daemon.in_use) == (0, 0)


async def test_a_pause_of_a_call_without_permit_acquires_none() -> None:
    """A call that takes no permit, such as an orchestration call, has none after its pause either."""
    session, daemon = Permits("session", 1), Permits("running", 1)
    async with RunPermit(session, daemon).paused():
        pass
    assert (session.in_use, daemon.in_use) == (0, 0)


async def test_concurrent_pauses_reacquire_once() -> None:
    """Two tasks of one call pause: only one of them acquires the permits again."""
    session, daemon = Permits("session", 8), Permits("running", 8)

    async def wait(permit: RunPermit) -> None:
        async with permit.paused():
            await asyncio.sleep(0)

    async with RunPermit(session, daemon) as permit:
        await asyncio.gather(wait(permit), wait(permit))
        assert (session.in_use, daemon.in_use) == (1, 1)
    assert (session.in_use, daemon.in_use) == (0, 0)


async def test_a_task_that_outlives_its_call_gets_no_permit() -> None:
    """A permit that arrives after the call's end is released."""
    session, daemon = Permits("session", 8), Permits("running", 1)
    go = asyncio.Event()

    async def wait(permit: RunPermit) -> None:
        async with permit.paused():
            await go.wait()

    async with RunPermit(session, daemon) as permit:
        early, late = asyncio.create_task(wait(permit)), asyncio.create_task(wait(permit))
        await asyncio.sleep(0)
        async with RunPermit(session, daemon):  # so that the paused task has to wait
            go.set()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
    await asyncio.gather(early, late)
    assert (session.in_use, daemon.in_use, session.waiting, daemon.waiting) == (0, 0, 0, 0)


STEPS = st.lists(
    st.sampled_from(["work", "pause", "both pause", "fail", "fail in pause", "cancel"]), min_size=1, max_size=12
)


async def pause(permit: RunPermit) -> None:
    async with permit.paused():
        await asyncio.sleep(0)


async def fail_in_pause(permit: RunPermit) -> None:
    async with permit.paused():
        raise ZeroDivisionError


async def call(step: str, permit: RunPermit, daemon: Permits) -> None:
    """One call of a mixture, as its step says."""
    async with permit:
        assert daemon.in_use <= daemon.limit
        await asyncio.sleep(0)
        match step:
            case "fail":
                raise ZeroDivisionError
            case "cancel":
                raise asyncio.CancelledError
            case "pause":
                await pause(permit)
            case "fail in pause":
                await fail_in_pause(permit)
            case "both pause":
                asyncio.ensure_future(pause(permit))  # noqa: RUF006 - it may outlive the call, as a tool's task may
                await pause(permit)
        await asyncio.sleep(0)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.integers(1, 3), st.integers(1, 3), st.lists(st.integers(0, 30), max_size=12))
def test_any_mixture_of_calls_releases_all_permits(
    steps: list[str], sessions: int, limit: int, cancels: list[int]
) -> None:
    """Whatever calls do, and whenever they are cancelled, permits are released exactly once."""

    async def run() -> None:
        daemon = Permits("running", limit)
        own = [Permits("session", 2) for _ in range(sessions)]
        tasks = [
            asyncio.create_task(call(step, RunPermit(own[index % sessions], daemon), daemon))
            for index, step in enumerate(steps)
        ]
        for moment in range(31):
            for index in (index for index, when in enumerate(cancels) if when == moment):
                tasks[index % len(tasks)].cancel()
            await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)
        for permits in (daemon, *own):
            assert (permits.in_use, permits.waiting, permits.free("")) == (0, 0, True)

    asyncio.run(run())


async def test_a_larger_limit_wakes_waiters() -> None:
    """As many as the new limit allows, in order of arrival."""
    permits = Permits("test", 1)
    order: list[int] = []
    release = asyncio.Event()

    async def work(number: int) -> None:
        async with permits:
            order.append(number)
            await release.wait()

    tasks = [asyncio.create_task(work(number)) for number in range(4)]
    await asyncio.sleep(0)
    permits.resize(3)
    await asyncio.sleep(0)
    assert (order, permits.in_use, permits.waiting) == ([0, 1, 2], 3, 1)
    release.set()
    await asyncio.gather(*tasks)
    assert (permits.in_use, permits.waiting) == (0, 0)


async def test_a_smaller_limit_revokes_no_permit() -> None:
    """Holders continue; the next waiter starts when fewer than the new limit are left."""
    permits = Permits("test", 3)
    leave = [asyncio.Event() for _ in range(4)]
    entered: list[int] = []

    async def work(number: int) -> None:
        async with permits:
            entered.append(number)
            await leave[number].wait()

    tasks = [asyncio.create_task(work(number)) for number in range(4)]
    await asyncio.sleep(0)
    permits.resize(1)
    for number in (0, 1):
        leave[number].set()
        await tasks[number]
        await asyncio.sleep(0)
    assert (entered, permits.in_use) == ([0, 1, 2], 1)
    leave[2].set()
    await tasks[2]
    await asyncio.sleep(0)
    assert (entered, permits.in_use) == ([0, 1, 2, 3], 1)
    leave[3].set()
    await tasks[3]
    assert permits.in_use == 0
