"""Single threads for work that would block the event loop.

Whenever the event loop resumes, it waits for Python's global lock, up to 5 ms for each thread that computes. So all
work of one kind runs in one thread, one piece after the other.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar, TypeVarTuple

_T = TypeVar("_T")
_Arguments = TypeVarTuple("_Arguments")


class WorkThread:
    """One thread, started by the first work."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._executor: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[[*_Arguments], _T], *arguments: *_Arguments) -> _T:
        """Runs a function after the work of earlier callers, and returns its result or raises its exception."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix=self._name)
        return await asyncio.get_running_loop().run_in_executor(self._executor, work, *arguments)

    def end(self) -> None:
        """Ends the thread after its present work; the process can then exit without waiting for it."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None


TOOL_THREAD: Final = WorkThread("toold-tools")
"""For work on tools: reads documents and schemas, and creates the catalog."""
in_tool_thread: Final = TOOL_THREAD.run
