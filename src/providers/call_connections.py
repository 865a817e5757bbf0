"""HTTP connections that are closed when their call is cancelled, at any point.

httpcore shields its cleanup from anyio's cancellation but not from asyncio's. A cancellation while it opens or closes a
connection leaves the connection open, and the vendor works for a cancelled call. So each call has a separate HTTP
client, and a failed or cancelled call closes its client with all connections.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, Generic, Protocol, TypeVar

import httpx

from ..protocol.trace_context import TRACEPARENT, current_traceparent
from .vendor_info import VendorAccess


class CallClient(Protocol):
    """An ``httpx.AsyncClient``, or an SDK's client with the same interface."""

    async def aclose(self) -> None: ...


C = TypeVar("C", bound=CallClient)

_on_retry: ContextVar[Callable[[], None] | None] = ContextVar("on_retry", default=None)


@contextmanager
def count_sdk_retries(on_retry: Callable[[], None]) -> Iterator[None]:
    """Within the block, calls ``on_retry`` for each request of a call after its first one, which is a retry of the
    SDK.
    """
    token = _on_retry.set(on_retry)
    try:
        yield
    finally:
        _on_retry.reset(token)


def trusted_certificates() -> ssl.SSLContext:
    """The trusted certificates for vendors. Loaded once, because they take 20 ms and some MB."""
    return _load_certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _load_certificates(_file: str | None, _directory: str | None) -> ssl.SSLContext:
    return httpx.create_ssl_context()  # reads both variables


@cache
def _no_certificates() -> ssl.SSLContext:
    """An empty context for the simulator, which listens on a loopback port without TLS."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class CallConnections(Generic[C]):
    """The HTTP clients of one transport: one per concurrent call, reused by later calls."""

    def __init__(self, access: VendorAccess, new_client: Callable[..., C]) -> None:
        """``new_client`` takes the keywords of ``httpx.AsyncClient``.

        Slow for the first real vendor of the process: loads the trusted certificates.
        """
        self._new_client = new_client
        self._trust_env = not access.simulated
        self._certificates = _no_certificates() if access.simulated else trusted_certificates()
        self._open: set[_CallLine[C]] = set()
        self._idle: list[_CallLine[C]] = []

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[C]:
        """Yields a client for one call. If the block raises, all its connections are closed before this returns."""
        line = self._idle.pop() if self._idle else self._new_line()
        line.sent = 0
        try:
            yield line.client
        except BaseException:
            self._open.discard(line)
            await wait_until_done(asyncio.ensure_future(line.aclose()))
            raise
        if line in self._open:
            self._idle.append(line)
        else:
            await line.aclose()  # removed by ``aclose`` meanwhile, possibly while connecting

    async def aclose(self) -> None:
        """Closes all clients. Running calls fail."""
        self._idle.clear()
        while self._open:
            await self._open.pop().aclose()

    def _new_line(self) -> "_CallLine[C]":
        line = _CallLine(self._new_client, trust_env=self._trust_env, verify=self._certificates)
        self._open.add(line)
        return line


class _CallLine(Generic[C]):
    """A client and its latest TCP connection. The client loses track of a connection that is interrupted between TCP
    and TLS.
    """

    def __init__(self, new_client: Callable[..., C], *, trust_env: bool, verify: ssl.SSLContext) -> None:
        # A redirect is an error, so that key and prompt are never sent elsewhere. The openai SDK would follow it.
        self.client = new_client(
            trust_env=trust_env, verify=verify, event_hooks={"request": [self._watch]}, follow_redirects=False
        )
        self.sent = 0
        """The number of requests of the current call."""
        self._connection: Any = None

    async def _watch(self, request: Any) -> None:
        self.sent += 1
        if self.sent > 1 and (on_retry := _on_retry.get()) is not None:
            on_retry()
        request.extensions["trace"] = self._trace
        if (traceparent := current_traceparent.get()) is not None:
            request.headers[TRACEPARENT] = traceparent

    async def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            self._connection = info["return_value"]

    async def aclose(self) -> None:
        await self.client.aclose()
        if self._connection is not None:
            await self._connection.aclose()


async def wait_until_done(work: asyncio.Future[Any]) -> None:
    """Waits until ``work`` is done, even if the wait is cancelled. Ignores the work's exception.

    Raises:
        asyncio.CancelledError: the wait was cancelled; raised once the work is done.
    """
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancelled = error
    if not work.cancelled():
        work.exception()  # retrieved, so that asyncio does not log it as never retrieved
    if cancelled is not None:
        raise cancelled
