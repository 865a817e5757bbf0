"""Listening on a port, and serving an ASGI app there within the running loop."""

import asyncio
import contextlib
import errno
import socket
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from .http_connection import HttpConnection


def listen(host: str, port: int, flag: str) -> socket.socket:
    """A listening TCP socket; port 0 takes a free one, and of a name's addresses IPv4 goes first.

    Raises:
        OSError: the message says which port, why not, and what to do; ``flag`` is what the operator sets the port by.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
        return _listener(family, address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            message = f"port {port} on {host} is taken; stop that program or choose another with {flag}"
        else:
            message = f"port {port} on {host} cannot be listened on ({error.strerror}); choose another {flag} or --host"
    except UnicodeError:  # from the resolver, for names that no host can have
        message = f"{host[:100]!r} is no address to listen on; choose another --host"
    raise OSError(message)


def _listener(family: socket.AddressFamily, address: tuple[str | int | bytes, ...]) -> socket.socket:
    # The protocol is named, or asyncio would leave Nagle's delay on: 40 ms an answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:  # or Linux would take the IPv4 port along with ``::``
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


class HttpServer:
    """Serves an ASGI app over HTTP/1.1 on the running loop; the process's signals stay its own."""

    def __init__(self, app: ASGIApp, host: str, port: int, flag: str) -> None:
        """``flag`` is what sets the port, for the error where it is taken."""
        self._app = app
        self._host = host
        self._port = port
        self._flag = flag
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port that is listened on, also where 0 was asked for."""
        return self._port

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: the address cannot be listened on; as ``listen``.
        """
        listener = listen(self._host, self._port, self._flag)
        self._port = listener.getsockname()[1]
        self._server = _Server(
            uvicorn.Config(
                self._app,
                http=HttpConnection,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=1,
            )
        )
        self._serving = asyncio.create_task(self._server.serve([listener]), name="http")
        await self._server.settled.wait()
        if not self._server.started:
            listener.close()
            await self._serving  # raises what went wrong

    async def ended(self) -> None:
        """Wait until it serves no more; returns at once where it never did."""
        if self._serving:
            await asyncio.shield(self._serving)

    async def close(self) -> None:
        """Stop listening; requests that run have a second to end."""
        if self._server:
            self._server.should_exit = True
            await self.ended()


class _Server(uvicorn.Server):
    """uvicorn as a part of another program: it takes no signals, and says when it listens or has failed to."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.settled = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.settled.set()
