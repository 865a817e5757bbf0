"""A sliding window over items: so many under way at once, the next begins as one ends."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

I = TypeVar("I")  # noqa: E741 - an item
R = TypeVar("R")


async def slide(
    items: Sequence[I], work: Callable[[int, I], Awaitable[R]], *, at_once: int, go_on: Callable[[], bool]
) -> list[R | None]:
    """What ``work(index, item)`` made of each item, in the items' order; None for those that were not begun, since
    ``go_on`` said no. When the caller is cancelled, so is all work, and it is waited for.
    """
    done: list[R | None] = [None] * len(items)
    waiting = iter(enumerate(items))

    async def take(waiting: Iterator[tuple[int, I]]) -> None:
        while go_on() and (next_one := next(waiting, None)) is not None:
            index, item = next_one
            done[index] = await work(index, item)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(at_once, len(items))):
            group.create_task(take(waiting))
    return done
