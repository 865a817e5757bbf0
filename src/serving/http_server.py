"""Listens on a port and serves an ASGI app there, on the running event loop."""

import asyncio
import contextlib
import errno
import socket
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, cast

import uvicorn
from starlette.types import ASGIApp

from .connection_slots import ConnectionLimits, ConnectionSlots
from .http_connection import HttpConnection, HttpPeer

_DATE_HEADER_S: Final = 1.0
"""The interval at which the header Date is updated; it counts in seconds."""
_POLL_S: Final = 0.005
"""The interval at which a closing server checks whether its connections have ended."""
KEEP_ALIVE_S: Final = 15
"""How long a connection may be idle after an answer. This is longer than httpx keeps a connection (5 s). Otherwise
httpx could send a request just when the server closes the connection."""


def listen(host: str, port: int, flag: str, *, shared: bool = False, accepts: bool = True) -> socket.socket:
    """Returns a listening TCP socket. Port 0 selects a free port; if a name has several addresses, IPv4 is preferred.

    If the port is ``shared``, other sockets of this user can listen on it too, and each gets a part of the connections
    (``SO_REUSEPORT``). A socket that does not ``accept`` connections only reserves the port.

    Raises:
        OSError: the message names the port, the reason and the remedy; ``flag`` is the option that sets the port.
    """
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = min(addresses, key=lambda entry: entry[0] != socket.AF_INET)
        return _listener(family, address, shared=shared, accepts=accepts)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            message = f"port {port} on {host} is in use; stop the program that uses it, or set another port with {flag}"
        else:
            message = f"cannot listen on port {port} of {host} ({error.strerror}); set another {flag} or --host"
    except UnicodeError:  # from the resolver, for invalid names
        message = f"{host[:100]!r} is not a valid address to listen on; set another --host"
    raise OSError(message)


def listen_on(host: str, port: int, flag: str, *, shared: bool) -> list[socket.socket]:
    """Returns the listening sockets of a server. If the port is shared with other processes, the last socket has a free
    port that belongs to this process alone.

    Raises:
        OSError: as raised by ``listen``.
    """
    first = listen(host, port, flag, shared=shared)
    if not shared:
        return [first]
    try:
        return [first, listen(host, 0, flag)]
    except BaseException:
        first.close()
        raise


def _listener(
    family: socket.AddressFamily, address: tuple[str | int | bytes, ...], *, shared: bool, accepts: bool
) -> socket.socket:
    # With the protocol set, asyncio disables Nagle's algorithm, which would delay each answer by 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:  # otherwise ``::`` occupies the IPv4 port too on Linux
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        if accepts:
            listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


class HttpServer:
    """Serves an ASGI app over HTTP/1.1 on the running event loop, without installing signal handlers."""

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        port: int,
        flag: str,
        slots: ConnectionSlots[HttpPeer] | None = None,
        *,
        shared: bool = False,
    ) -> None:
        """``flag`` is the option that sets the port, for the error message; without ``slots`` any number of peers may
        connect. If the port is ``shared`` with other processes, the server also listens on a separate port.
        """
        self._slots = slots or ConnectionSlots(ConnectionLimits(sys.maxsize, sys.maxsize, sys.maxsize))
        self._app = app
        self._host = host
        self._port = port
        self._flag = flag
        self._shared = shared
        self.own_port = port
        """After the start, a port that no other process shares."""
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The actual port, even if port 0 was requested."""
        return self._port

    async def start(self) -> None:
        """Starts listening.

        Raises:
                OSError: as raised by ``listen``.
        """
        listeners = listen_on(self._host, self._port, self._flag, shared=self._shared)
        self._port, self.own_port = (listeners[place].getsockname()[1] for place in (0, -1))
        self._server = _Server(
            uvicorn.Config(
                self._app,
                http=cast("Any", partial(HttpConnection, slots=self._slots, direct_app=self._app)),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=1,
                timeout_keep_alive=KEEP_ALIVE_S,
            )
        )
        self._serving = asyncio.create_task(self._server.serve(listeners), name="http")
        await self._server.settled.wait()
        if not self._server.started:
            for listener in listeners:
                listener.close()
            await self._serving  # raises the cause

    async def ended(self) -> None:
        """Waits until the server has stopped; returns immediately if it never started."""
        if self._serving:
            await asyncio.shield(self._serving)

    async def close(self) -> None:
        """Stops listening; running requests have one second to end."""
        if self._server:
            self._server.exit()
            await self.ended()


class _Server(uvicorn.Server):
    """A uvicorn server that handles no signals and reports when it is listening or has failed."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.settled = asyncio.Event()
        self._exiting = asyncio.Event()

    def exit(self) -> None:
        """Makes ``serve`` close the server and return."""
        self.should_exit = True
        self._exiting.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.settled.set()

    async def main_loop(self) -> None:
        """Replaces uvicorn's loop, which wakes up ten times per second to check whether it has to exit."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._exiting.wait(), _DATE_HEADER_S)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Replaces uvicorn's method, which pauses for 0.1 s and then polls connections and tasks every 0.1 s."""
        for listener in (*self.servers, *(sockets or ())):
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 - uvicorn has no event
                    await asyncio.sleep(_POLL_S)
        for task in list(self.server_state.tasks):
            task.cancel()
