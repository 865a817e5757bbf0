"""A worker's connection to its supervisor."""

import asyncio
import socket
from contextlib import suppress

from .worker_slot import READY, RELOADED, WorkerSlot


class SupervisorLink:
    """Stays open as long as the worker runs."""

    def __init__(self, slot: WorkerSlot) -> None:
        self._socket = socket.socket(fileno=slot.supervisor_fd)
        self._socket.setblocking(False)
        self._socket.set_inheritable(False)  # programs that the worker starts must not keep it open

    def ready(self) -> None:
        """Reports that the worker accepts connections."""
        self._send(READY)

    def reloaded(self) -> None:
        """Reports that an operator has reloaded the settings of this worker, so that the others follow."""
        self._send(RELOADED)

    async def supervisor_ended(self) -> None:
        """Returns when the supervisor has ended, for any reason."""
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            while await loop.sock_recv(self._socket, 64):
                pass

    def _send(self, message: bytes) -> None:
        with suppress(OSError):  # the supervisor has ended, which the worker notices by itself
            self._socket.send(message)
