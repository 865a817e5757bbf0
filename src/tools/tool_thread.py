"""Runs work on tools outside of the event loop: reads documents and schemas, and makes the catalog.

There is one thread for all of it. Whenever the event loop resumes, it waits for Python's global lock, up to 5 ms for
each thread that computes; with a thread per source it would wait for all of them.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar, TypeVarTuple

_T = TypeVar("_T")
_Arguments = TypeVarTuple("_Arguments")

_thread: Final = ThreadPoolExecutor(1, thread_name_prefix="toold-tools")


async def in_tool_thread(work: Callable[[*_Arguments], _T], *arguments: *_Arguments) -> _T:
    """Runs a function after the work of earlier callers, and returns its result or raises its exception."""
    return await asyncio.get_running_loop().run_in_executor(_thread, work, *arguments)
