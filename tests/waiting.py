"""Waiting in tests for what other tasks, threads and processes do."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Final

LONG_S: Final = 60.0
"""Many times what anything takes that is waited for: who waits longer waits for ever."""
PAUSE_S: Final = 0.01


async def until(reached: Callable[[], object]) -> None:
    """Return once it is reached; ``reached`` may be a coroutine function.

    Raises:
        TimeoutError: it is not within a minute.
    """
    async with asyncio.timeout(LONG_S):
        while not (await answer if inspect.isawaitable(answer := reached()) else answer):
            await asyncio.sleep(PAUSE_S)
