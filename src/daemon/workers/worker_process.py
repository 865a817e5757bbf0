"""The process of one worker: its start, its readiness and its end."""

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from .worker_slot import READY, RELOADED, SLOT_VARIABLE, WorkerSlot, encode_slot


class WorkerProcess:
    """A running worker, created by ``start_worker``."""

    def __init__(
        self, process: asyncio.subprocess.Process, link: socket.socket, on_reload: Callable[["WorkerProcess"], None]
    ) -> None:
        self._process = process
        self._link = link
        self._on_reload = on_reload
        self._started = time.monotonic()
        self.is_ready = asyncio.Event()
        self._reading = asyncio.create_task(self._read(), name="worker link")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ran_s(self) -> float:
        """The seconds since its start."""
        return time.monotonic() - self._started

    async def ended(self) -> int:
        """Waits for its end. Returns the exit code, or the negative number of the signal that killed it."""
        code = await self._process.wait()
        await self._reading
        self._link.close()
        return code

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal, unless it has ended."""
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                received = await loop.sock_recv(self._link, 64)
            except OSError:
                return
            if not received:
                return
            if READY in received:
                self.is_ready.set()
            if RELOADED in received:
                self._on_reload(self)


async def start_worker(
    command: Sequence[str], slot: Callable[[int], WorkerSlot], on_reload: Callable[[WorkerProcess], None]
) -> WorkerProcess:
    """Starts a worker. ``slot`` creates its slot from the descriptor of its link.

    The worker gets a separate process group, so that Ctrl-C reaches it only through the supervisor.

    Raises:
        OSError: the process cannot be started.
    """
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with theirs:
        descriptor = theirs.fileno()
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                env={**os.environ, SLOT_VARIABLE: encode_slot(slot(descriptor))},
                pass_fds=[descriptor],
                process_group=0,
            )
        except BaseException:
            ours.close()
            raise
    return WorkerProcess(process, ours, on_reload)
