"""What ends a program from outside: its time, too much output, the death of its worker. Each at once, whatever it does.

All by one clock, which is set to now where something else than time ends it.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final

from .program_output import KEPT_BYTES
from .sandbox_errors import ProgramStoppedError, SandboxError, WorkerDiedError

GONE: Final = "The process that ran the program is gone; the calls that it had made may have had their effect."


class ProgramTermination:
    """Of one program."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock: asyncio.Timeout | None = None
        self._timeout_s = 0.0
        self._reason: SandboxError | None = None

    @property
    def reason(self) -> SandboxError:
        """Why it was ended."""
        told = f"The program's {self._timeout_s:.3g} s are over, the time in which it waited for tools included."
        return self._reason or ProgramStoppedError("time", told)

    @asynccontextmanager
    async def within(self, timeout_s: float) -> AsyncIterator[None]:
        """End the block after so many seconds, or before.

        Raises:
            TimeoutError: it was ended; ``reason`` says why.
        """
        self._timeout_s = timeout_s
        async with asyncio.timeout(timeout_s) as self._clock:
            yield

    def for_flood(self) -> None:
        """It prints too much. May be called by any thread."""
        stop = ProgramStoppedError("output", f"The program printed more than {KEPT_BYTES:,} bytes; print less.")
        self._loop.call_soon_threadsafe(self._now, stop)

    @contextmanager
    def watch(self, worker_pid: int | None) -> Iterator[None]:
        """End it when this process dies while the block waits for something else; while it works, the engine tells.

        Where the system cannot tell of a process, its end is noticed when the program is to go on.
        """
        if worker_pid is None or not hasattr(os, "pidfd_open"):
            yield
            return
        try:
            descriptor = os.pidfd_open(worker_pid)
        except OSError:  # it is gone already, and the engine will say so
            yield
            return
        try:
            self._loop.add_reader(descriptor, self._now, WorkerDiedError(GONE))
            yield
        finally:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)

    def _now(self, reason: SandboxError) -> None:
        self._reason = self._reason or reason
        if self._clock is not None:
            with suppress(RuntimeError):  # it has ended meanwhile
                self._clock.reschedule(self._loop.time())
