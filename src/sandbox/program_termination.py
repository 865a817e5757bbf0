"""Ends a program at once: at its timeout, at too much output, or when its worker dies.

All of these use one timeout, which is rescheduled to now.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final

from .program_output import MAX_OUTPUT_BYTES
from .sandbox_errors import ProgramStoppedError, SandboxError, WorkerDiedError

WORKER_DIED: Final = "The process that ran the program died; calls that it had made may have had an effect."


class ProgramTermination:
    """Ends one program."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock: asyncio.Timeout | None = None
        self._timeout_s = 0.0
        self._reason: SandboxError | None = None

    @property
    def reason(self) -> SandboxError:
        """Why the program was ended."""
        message = f"The program exceeded its {self._timeout_s:.3g} s, which include waiting for tools."
        return self._reason or ProgramStoppedError("time", message)

    @asynccontextmanager
    async def within(self, timeout_s: float) -> AsyncIterator[None]:
        """End the block after ``timeout_s`` seconds, or earlier.

        Raises:
            TimeoutError: the block was ended; ``reason`` has the cause.
        """
        self._timeout_s = timeout_s
        async with asyncio.timeout(timeout_s) as self._clock:
            yield

    def on_output_limit(self) -> None:
        """End the program because it prints too much. Thread-safe."""
        stop = ProgramStoppedError("output", f"The program printed more than {MAX_OUTPUT_BYTES:,} bytes; print less.")
        self._loop.call_soon_threadsafe(self._end_now, stop)

    @contextmanager
    def watch(self, worker_pid: int | None) -> Iterator[None]:
        """End the program if its worker process dies during the block; outside of it, the engine detects that.

        On systems without pidfd, a dead worker is detected when the program continues.
        """
        if worker_pid is None or not hasattr(os, "pidfd_open"):
            yield
            return
        try:
            descriptor = os.pidfd_open(worker_pid)
        except OSError:  # the worker is dead already, which the engine reports
            yield
            return
        try:
            self._loop.add_reader(descriptor, self._end_now, WorkerDiedError(WORKER_DIED))
            yield
        finally:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)

    def _end_now(self, reason: SandboxError) -> None:
        self._reason = self._reason or reason
        if self._clock is not None:
            with suppress(RuntimeError):  # the block has ended
                self._clock.reschedule(self._loop.time())
