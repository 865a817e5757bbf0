"""Runs long work outside of the event loop, for calls with many values or long texts (decision 54).

There is one thread for all of it. C code, such as a JSON decoder, holds Python's global lock for each of its steps;
with several threads the event loop would wait for the steps of all of them.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar, TypeVarTuple

_T = TypeVar("_T")
_Arguments = TypeVarTuple("_Arguments")

_thread: Final = ThreadPoolExecutor(1, thread_name_prefix="toold-long-work")


async def off_loop(work: Callable[[*_Arguments], _T], *arguments: *_Arguments) -> _T:
    """Runs a pure function after the work of earlier callers, and returns its result or raises its exception."""
    return await asyncio.get_running_loop().run_in_executor(_thread, work, *arguments)
