"""So many at once, the next as one ends."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.tools.orchestration.bounded_map import slide


@given(st.lists(st.integers(), max_size=30), st.integers(1, 10))
def test_each_item_has_its_result_in_its_place(items: list[int], at_once: int) -> None:
    """However many go at once, results stand where their items do."""

    async def work(index: int, item: int) -> tuple[int, int]:
        await asyncio.sleep(0)
        return index, item

    done = asyncio.run(slide(items, work, at_once=at_once, go_on=lambda: True))
    assert done == list(enumerate(items))


async def test_the_next_begins_as_one_ends() -> None:
    """A slow item holds up none but itself: there are no waves."""
    slow, begun = asyncio.Event(), list[int]()

    async def work(index: int, item: int) -> None:
        begun.append(index)
        if index == 0:
            await slow.wait()
        if index == 9:
            slow.set()

    async with asyncio.timeout(10):
        await slide(range(10), work, at_once=2, go_on=lambda: True)
    assert begun == list(range(10))


async def test_no_more_go_at_once_than_may() -> None:
    """The window's width is kept to."""
    now = most = 0

    async def work(index: int, item: int) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1

    await slide(range(20), work, at_once=3, go_on=lambda: True)
    assert most == 3


async def test_what_was_not_begun_has_no_result() -> None:
    """Once ``go_on`` says no, nothing new begins, and what runs ends well."""
    done = list[int]()

    async def work(index: int, item: int) -> int:
        await asyncio.sleep(0)
        done.append(index)
        return index

    assert await slide(range(6), work, at_once=2, go_on=lambda: len(done) < 2) == [0, 1, 2, None, None, None]


async def test_a_cancelled_window_cancels_its_work() -> None:
    """Nothing of it runs on."""
    ended = list[int]()

    async def work(index: int, item: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(index)

    task = asyncio.create_task(slide(range(5), work, at_once=2, go_on=lambda: True))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(ended) == [0, 1]
