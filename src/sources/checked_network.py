"""HTTP connections whose addresses are checked when they are opened.

The connection uses the checked address, so a DNS name cannot be rebound in between (decision 32). Callers handle
redirects.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import httpcore
import httpx

from .address_policy import AddressPolicy
from .read_rate import ReadRate

_TIMEOUTS: Final = {"connect": 10.0}
"""The timeout to connect, in seconds. The caller limits the whole request."""


_RESOLVE_S: Final = 3.0
"""The timeout of a check of a host's addresses. A request has the timeout of its connection."""


PARTS_PER_S: Final = 10_000.0
"""The rate at which parts of answers are read from one source. A server may send each byte as a separate part, which
costs the daemon about 0.05 ms.
"""
_PARTS_OF_TURN: Final = 32
"""The number of parts that are read without yielding to other tasks, because they may already be in memory."""


class ForbiddenAddressError(Exception):
    """The request would go to a forbidden address; nothing was sent. The message names the host and the reason."""


class _Backend(httpcore.AsyncNetworkBackend):
    """Connects to allowed addresses only, and keeps a reference to the last connection."""

    def __init__(self, policy: AddressPolicy) -> None:
        self._policy = policy
        self._unchecked_backend = httpcore.AnyIOBackend()
        self._last: httpcore.AsyncNetworkStream | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                addresses = await _addresses(host, port)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"{host} was not resolved in time") from error
        failure: Exception | None = None
        for address in self._allowed(host, addresses):
            try:
                self._last = await self._unchecked_backend.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return self._last
        raise failure or httpcore.ConnectError(f"{host} has no address")

    def _allowed(self, host: str, addresses: list[str]) -> list[str]:
        reasons = {address: self._policy.rejection_reason(host, address) for address in addresses}
        allowed = [address for address in addresses if reasons[address] is None]
        if addresses and not allowed:
            address, why = next(iter(reasons.items()))
            where = host if host.strip("[]") == address else f"{host} ({address})"
            raise ForbiddenAddressError(f"{where} {why}; {self._policy.setting} can allow it")
        return allowed

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def aclose(self) -> None:
        """Closes the last connection. The pool loses track of a connection that is cancelled between TCP and TLS."""
        if self._last is not None:
            await self._last.aclose()


async def _addresses(host: str, port: int) -> list[str]:
    try:
        resolved = await asyncio.get_running_loop().getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpcore.ConnectError(f"{host} cannot be resolved") from error
    return list(dict.fromkeys(str(address[0]) for *_, address in resolved))


class NetworkConnection:
    """A client that has at most one connection. Raises httpcore's exceptions and ForbiddenAddressError.

    It uses httpcore because httpx's client logs each URL, which may contain a key.
    """

    def __init__(self, policy: AddressPolicy, certificates: ssl.SSLContext, rate: ReadRate | None = None) -> None:
        """``rate`` limits the reading of parts; by default, each connection has a separate limit."""
        self._rate = rate or ReadRate(PARTS_PER_S)
        self._backend = _Backend(policy)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=certificates, max_connections=1, keepalive_expiry=30.0, network_backend=self._backend
        )

    @asynccontextmanager
    async def answer(self, request: httpx.Request, on_sent: Callable[[], None]) -> AsyncIterator[httpx.Response]:
        """Yields the response, its body unread. ``on_sent`` is called just before the first byte is sent."""

        async def trace(event: str, _: Mapping[str, Any]) -> None:
            if event.endswith("send_request_headers.started"):
                on_sent()

        url = request.url
        answer = await self._pool.handle_async_request(
            httpcore.Request(
                request.method,
                httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                headers=request.headers.raw,
                content=request.stream,
                extensions={"timeout": _TIMEOUTS, "trace": trace},
            )
        )
        try:
            body = _Body(answer.stream, self._rate)
            yield httpx.Response(answer.status, headers=answer.headers, stream=body, request=request)
        finally:
            await answer.aclose()

    async def aclose(self) -> None:
        await self._pool.aclose()
        await self._backend.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, stream: Any, rate: ReadRate) -> None:
        self._stream = stream
        self._rate = rate

    async def __aiter__(self) -> AsyncIterator[bytes]:
        unpaid = 0
        async for part in self._stream:
            yield part
            unpaid += 1
            if unpaid == _PARTS_OF_TURN:
                await asyncio.sleep(self._rate.consume(unpaid))
                unpaid = 0


class CheckedNetwork:
    """The connection pool of one source: it grows to the largest number of concurrent requests and reuses connections.

    Proxies of the environment are ignored: they would connect to unchecked addresses.
    """

    def __init__(self, policy: AddressPolicy) -> None:
        self._policy = policy
        self._rate = ReadRate(PARTS_PER_S)
        self._idle: list[NetworkConnection] = []
        self._closing: set[asyncio.Task[None]] = set()
        self._certificates: ssl.SSLContext | None = None
        self._closed = False

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[NetworkConnection]:
        """Acquires a connection for one request. It is closed if the block raises: httpcore may lose a connection whose
        request is cancelled (see ``providers.call_connections``).

        The block may raise httpcore's exceptions and ForbiddenAddressError.
        """
        connection = self._idle.pop() if self._idle else await self._new_connection()
        try:
            yield connection
        except BaseException:
            self._close_in_background(connection)
            raise
        if self._closed:
            self._close_in_background(connection)
        else:
            self._idle.append(connection)

    async def rejection_reason(self, host: str) -> str | None:
        """Returns why requests to this host would be refused; None if they are allowed, or the host cannot be
        resolved.
        """
        try:
            async with asyncio.timeout(_RESOLVE_S):
                addresses = await _addresses(host, 0)
        except (TimeoutError, httpcore.ConnectError):
            return None
        reasons = [self._policy.rejection_reason(host, address) for address in addresses]
        return None if None in reasons else next(iter(reasons), None)

    async def close(self) -> None:
        """Closes idle connections now, and acquired ones when they are returned."""
        self._closed = True
        while self._idle:
            self._close_in_background(self._idle.pop())
        if self._closing:
            await asyncio.wait(self._closing)

    async def _new_connection(self) -> NetworkConnection:
        if self._certificates is None:
            self._certificates = await asyncio.to_thread(httpx.create_ssl_context)  # reads 200 KiB of certificates
        return NetworkConnection(self._policy, self._certificates, self._rate)

    def _close_in_background(self, connection: NetworkConnection) -> None:
        closing = asyncio.create_task(connection.aclose())
        self._closing.add(closing)
        closing.add_done_callback(self._on_closed)

    def _on_closed(self, closing: asyncio.Task[None]) -> None:
        self._closing.discard(closing)
        if not closing.cancelled():
            closing.exception()  # retrieved, so that asyncio does not report it
