"""Bounded counts: never more than the limit, and always back."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toold.daemon.dispatch import Permits, RunPermit


async def test_no_more_than_the_limit_run_and_the_rest_wait_their_turn() -> None:
    """First come, first served, and never one too many."""
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


async def test_who_is_cancelled_as_a_permit_comes_free_hears_of_that_alone() -> None:
    """Both in one turn of the loop: the wait ends with its cancellation, and the permit is nobody's."""
    permits = Permits("test", 1)
    let_go = asyncio.Event()

    async def hold() -> None:
        async with permits:
            await let_go.wait()

    holder, waiter = asyncio.create_task(hold()), asyncio.create_task(hold())
    while not permits.waiting:
        await asyncio.sleep(0)
    let_go.set()
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    await holder
    assert (permits.in_use, permits.waiting) == (0, 0)


async def test_its_repr_is_the_status_display() -> None:
    """Who looks at it sees the name, what is in use, the limit and who waits."""
    async with Permits("running", 3) as permits:
        assert repr(permits) == "<Permits running in_use=1/3 waiting=0>"


async def test_a_run_permit_is_both_or_neither() -> None:
    """A call that is cancelled while it waits for the daemon's permit gives its session's back."""
    session, daemon = Permits("session", 8), Permits("running", 1)
    async with daemon:
        task = asyncio.create_task(RunPermit(session, daemon).__aenter__())
        await asyncio.sleep(0)
        assert (session.in_use, daemon.waiting) == (1, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (session.in_use, daemon.in_use, daemon.waiting) == (0, 0, 0)


async def test_a_pause_lends_the_permit_to_others_and_takes_it_back() -> None:
    """While a call only waits, another runs; it goes on when there is room again."""
    session, daemon = Permits("session", 1), Permits("running", 1)
    async with RunPermit(session, daemon) as permit:
        async with permit.paused():
            assert (session.in_use, daemon.in_use) == (0, 0)
            async with RunPermit(session, daemon):
                pass
        assert permit.held
        assert (session.in_use, daemon.in_use) == (1, 1)
    assert (session.in_use, daemon.in_use) == (0, 0)


async def test_a_pause_that_ends_by_an_exception_leaves_nothing_held() -> None:
    """A call that is cancelled during its pause gives back nothing twice."""
    session, daemon = Permits("session", 1), Permits("running", 1)

    async def fail_in_pause() -> None:
        async with RunPermit(session, daemon) as permit, permit.paused():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_in_pause()
    assert (session.in_use, daemon.in_use) == (0, 0)


async def test_a_call_that_pauses_twice_at_once_holds_its_permits_once() -> None:
    """Two tasks of one call wait and go on: the permits are taken again by one of them only."""
    session, daemon = Permits("session", 8), Permits("running", 8)

    async def wait(permit: RunPermit) -> None:
        async with permit.paused():
            await asyncio.sleep(0)

    async with RunPermit(session, daemon) as permit:
        await asyncio.gather(wait(permit), wait(permit))
        assert (session.in_use, daemon.in_use) == (1, 1)
    assert (session.in_use, daemon.in_use) == (0, 0)


async def test_a_task_that_outlives_its_call_takes_no_permit() -> None:
    """What stood in line for a call that has ended gives back what it gets."""
    session, daemon = Permits("session", 8), Permits("running", 1)
    go = asyncio.Event()

    async def wait(permit: RunPermit) -> None:
        async with permit.paused():
            await go.wait()

    async with RunPermit(session, daemon) as permit:
        early, late = asyncio.create_task(wait(permit)), asyncio.create_task(wait(permit))
        await asyncio.sleep(0)
        async with RunPermit(session, daemon):  # so that who goes on stands in line
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
def test_after_any_mixture_every_count_is_back(steps: list[str], sessions: int, limit: int, cancels: list[int]) -> None:
    """Whatever calls do, and whenever they are cancelled, nothing stays held and nothing is given back twice."""

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
            assert (permits.in_use, permits.waiting, permits.free) == (0, 0, True)

    asyncio.run(run())


async def test_a_larger_bound_lets_those_in_line_go_on() -> None:
    """As many as the new bound allows, in the order in which they came."""
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


async def test_a_smaller_bound_takes_nobodys_permit() -> None:
    """Those who hold one go on; the next one waits until fewer than the new bound are left."""
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
