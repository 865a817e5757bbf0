"""The two ports on which all workers listen."""

import socket
from types import TracebackType
from typing import Self

from ...serving import listen


class SharedPorts:
    """Reserves the WebSocket port and the HTTP port while open, so that a restarted worker can listen on them.

    The sockets are bound with ``SO_REUSEPORT`` and do not listen: the kernel gives connections only to the workers.

    Raises:
        OSError: a port is in use, or cannot be bound; as raised by ``serving.listen``.
    """

    def __init__(self, host: str, port: int, http_port: int) -> None:
        self._sockets: list[socket.socket] = []
        try:
            self.port = self._reserve(host, port, "--port")
            self.http_port = self._reserve(host, http_port, "--http-port")
        except BaseException:
            self.close()
            raise

    def _reserve(self, host: str, port: int, flag: str) -> int:
        # A port on which another service listens must not be shared with it. Only a plain bind shows that it is in use.
        with listen(host, port, flag) as found:
            number = int(found.getsockname()[1])
        reserved = listen(host, number, flag, shared=True, accepts=False)
        self._sockets.append(reserved)
        return number

    def close(self) -> None:
        for each in self._sockets:
            each.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
