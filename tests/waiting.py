"""Waiting in tests for what other tasks, threads and processes do."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Final

LONG_S: Final = 60.0
"""Far longer than any of these waits takes, so that a test fails instead of hanging."""
PAUSE_S: Final = 0.01


async def until(reached: Callable[[], object], *, limit_s: float | None = LONG_S) -> None:
    """Return once ``reached()`` is true; ``reached`` may be a coroutine function.

    Raises:
        TimeoutError: it is not true within ``limit_s``; None waits for ever.
    """
    async with asyncio.timeout(limit_s):
        while not (await answer if inspect.isawaitable(answer := reached()) else answer):
            await asyncio.sleep(PAUSE_S)
