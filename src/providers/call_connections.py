"""Connections that end with their call, whatever instant it is cancelled at.

httpcore shields its cleaning up from anyio's cancellation, but not from asyncio's: a cancel that comes while it closes
a connection, or while it makes one, leaves that connection open, and the vendor at work for nobody. So each call has
an HTTP client to itself, and a call that does not end by itself takes its client along, connections and all.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, Generic, Protocol, TypeVar

import httpx

from .vendor_info import VendorAccess


class CallClient(Protocol):
    """An ``httpx.AsyncClient``, or an SDK's own of the same shape."""

    async def aclose(self) -> None: ...


C = TypeVar("C", bound=CallClient)

_on_repeat: ContextVar[Callable[[], None] | None] = ContextVar("on_repeat", default=None)


@contextmanager
def told_of_repeats(on_repeat: Callable[[], None]) -> Iterator[None]:
    """Within the block ``on_repeat`` is called for each request of a call after its first: an SDK that tries again."""
    token = _on_repeat.set(on_repeat)
    try:
        yield
    finally:
        _on_repeat.reset(token)


class CallConnections(Generic[C]):
    """The HTTP clients of one road: as many as its calls ran at once, so that a connection serves many calls."""

    def __init__(self, access: VendorAccess, new_client: Callable[..., C]) -> None:
        """``new_client`` takes the keywords of ``httpx.AsyncClient``. Slow: reads the certificates to trust."""
        self._new_client = new_client
        self._trust_env = not access.simulated
        self._certificates = httpx.create_ssl_context(trust_env=self._trust_env)
        self._open: set[_Line[C]] = set()
        self._idle: list[_Line[C]] = []

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[C]:
        """A client for one call. Where the block raises, every connection of it is closed before ``lend`` does."""
        line = self._idle.pop() if self._idle else self._new_line()
        line.sent = 0
        try:
            yield line.client
        except BaseException:
            self._open.discard(line)
            await ended(asyncio.ensure_future(line.aclose()))
            raise
        if line in self._open:
            self._idle.append(line)
        else:
            await line.aclose()  # closed before, perhaps while it was connecting

    async def aclose(self) -> None:
        """Close them all, those of running calls too, which fail by it."""
        self._idle.clear()
        while self._open:
            await self._open.pop().aclose()

    def _new_line(self) -> "_Line[C]":
        line = _Line(self._new_client, trust_env=self._trust_env, verify=self._certificates)
        self._open.add(line)
        return line


class _Line(Generic[C]):
    """A client, and the connection that it made last, which it may not know of: it forgets one that is cut off
    between TCP and TLS.
    """

    def __init__(self, new_client: Callable[..., C], *, trust_env: bool, verify: ssl.SSLContext) -> None:
        self.client = new_client(trust_env=trust_env, verify=verify, event_hooks={"request": [self._watch]})
        self.sent = 0
        """Requests of the call that has it."""
        self._connection: Any = None

    async def _watch(self, request: Any) -> None:
        self.sent += 1
        if self.sent > 1 and (on_repeat := _on_repeat.get()) is not None:
            on_repeat()
        request.extensions["trace"] = self._trace

    async def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            self._connection = info["return_value"]

    async def aclose(self) -> None:
        await self.client.aclose()
        if self._connection is not None:
            await self._connection.aclose()


async def ended(work: asyncio.Future[Any]) -> None:
    """Wait until ``work`` has ended, well or not, however often the waiting is cancelled.

    Raises:
        asyncio.CancelledError: the waiting was cancelled; only once the work has ended.
    """
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancelled = error
    if not work.cancelled():
        work.exception()  # looked at, so that nobody reports it as never retrieved
    if cancelled is not None:
        raise cancelled
