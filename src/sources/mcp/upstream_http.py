"""HTTP to an MCP server by the SDK, over the source's own connections: checked addresses, bounded answers, its secret.

The SDK knows failures of HTTP by a message's text alone. Here each call has an ``UpstreamExchange``, which
travels with the SDK's tasks, and learns by code what became of the request.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

import httpcore
import httpx
import httpx2
import msgspec
from mcp_types import CONNECTION_CLOSED

from ...protocol.terminal_text import one_line
from ...tools import SecretUnavailableError
from ..checked_network import CheckedNetwork, ForbiddenAddressError
from ..json_surrogates import LoneSurrogates
from .server_output import MESSAGES_PER_S, ReadRate

_NOTICE_S: Final = 10.0
"""How long the answer to a notification is awaited: requests wait behind it."""
_GOODBYE_S: Final = 1.5
"""How long the end of a session may take, which nobody is to wait for."""
_EVENT_ENDS: Final = (b"\n\n", b"\n\r\n", b"\r\r")
_LINES_OF_AN_EVENT: Final = 3
_FAILURES: Final = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, httpx.InvalidURL, OSError)


@dataclass(slots=True)
class UpstreamExchange:
    """What became of one call's request."""

    deadline: float | None = None
    """Of the loop's clock: nothing of the answer is read after that."""
    sent: bool = False
    """It may have reached the server."""
    status: int | None = None
    retry_after: str | None = None
    forbidden: str | None = None
    """Why nothing may go there."""
    broken: bool = False
    """There was no connection, or it broke."""
    too_large: bool = False
    unreadable: str | None = None
    """Why nothing can be made of the answer."""

    def note_sent(self) -> None:
        self.sent = True


_exchange: ContextVar[UpstreamExchange | None] = ContextVar("exchange", default=None)


@contextmanager
def noting(exchange: UpstreamExchange) -> Iterator[None]:
    """What the SDK sends for this task, within the block, is noted here."""
    token = _exchange.set(exchange)
    try:
        yield
    finally:
        _exchange.reset(token)


class _Message(msgspec.Struct):
    id: str | int | None = None


class SourceTransport(httpx2.AsyncBaseTransport):
    """Satisfies ``httpx2``'s transport, on the lines of a source's network."""

    def __init__(self, network: CheckedNetwork, headers: Callable[[], Mapping[str, str]], max_bytes: int) -> None:
        """``headers`` are the source's own, read for each request; an answer has ``max_bytes`` at most."""
        self._network = network
        self._headers = headers
        self._max_bytes = max_bytes
        self._pace = ReadRate(MESSAGES_PER_S)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The server's answer; where there is none, one that says so in JSON-RPC: an exception here would end the
        session of all who call the same server.
        """
        exchange = _exchange.get()
        body = await request.aread()
        deadline = None if exchange is None else exchange.deadline
        if request.method == "DELETE":
            deadline = asyncio.get_running_loop().time() + _GOODBYE_S
        elif body and msgspec.json.decode(body, type=_Message).id is None:
            deadline = asyncio.get_running_loop().time() + _NOTICE_S
        noted = exchange or UpstreamExchange()
        try:
            async with asyncio.timeout_at(deadline):
                return await self._ask(request, body, noted)
        except (ForbiddenAddressError, SecretUnavailableError) as error:
            noted.forbidden = failure = str(error)
        except _PackedError as error:
            noted.unreadable = failure = str(error)
        except (*_FAILURES, TimeoutError) as error:
            noted.broken, failure = True, f"no answer ({type(error).__name__})"
        told = {"jsonrpc": "2.0", "id": None, "error": {"code": CONNECTION_CLOSED, "message": failure}}
        return httpx2.Response(502, json=told, request=request)

    async def _ask(self, request: httpx2.Request, body: bytes, exchange: UpstreamExchange) -> httpx2.Response:
        headers = httpx.Headers(request.headers.raw)
        headers.update(self._headers())
        asked = httpx.Request(request.method, str(request.url), headers=headers, content=body)
        async with AsyncExitStack() as stack:
            line = await stack.enter_async_context(self._network.lend())
            answer = await stack.enter_async_context(line.answer(asked, exchange.note_sent))
            exchange.status, exchange.retry_after = answer.status_code, answer.headers.get("retry-after")
            coding = answer.headers.get("content-encoding", "identity").strip().lower()
            if coding not in {"", "identity"}:  # a few bytes of it can stand for gigabytes
                raise _PackedError(f"it is packed ({one_line(coding, 20)}), though the daemon asked for it unpacked")
            streams = answer.headers.get("content-type", "").startswith("text/event-stream")
            if body:
                self._pace.add_request()
            body_of = _Body(answer, stack.pop_all(), exchange, self._max_bytes, self._pace if streams else None)
            return httpx2.Response(answer.status_code, headers=answer.headers.raw, stream=body_of, request=request)


class _PackedError(Exception):
    """An answer is packed."""


class _Body(httpx2.AsyncByteStream):
    """An answer's body, as far as its bound, or that of each of its events, and its call's deadline. What goes wrong is
    a ``StreamError``, which the SDK takes for one request's own.
    """

    def __init__(
        self,
        answer: httpx.Response,
        held: AsyncExitStack,
        exchange: UpstreamExchange,
        bound: int,
        pace: ReadRate | None,
    ) -> None:
        """``pace`` is that of events, where the answer is a stream of them."""
        self._answer = answer
        self._held = held
        self._exchange = exchange
        self._bound = bound
        self._pace = pace

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts, read, before, halves = self._answer.aiter_raw(), 0, b"", LoneSurrogates()
        while True:
            try:
                async with asyncio.timeout_at(self._exchange.deadline):
                    part = await anext(parts, None)
                    if self._pace is not None and part is not None:
                        await asyncio.sleep(self._pace.consume(max(1, part.count(b"\n") // _LINES_OF_AN_EVENT)))
            except (*_FAILURES, TimeoutError) as error:
                self._exchange.broken = True
                raise httpx2.StreamError(f"the answer broke off ({type(error).__name__})") from error
            if part is None:
                yield halves.partial
                return
            read += len(part)
            if self._pace is not None:
                joined = before + part
                end = max(joined.rfind(mark) for mark in _EVENT_ENDS)
                read, before = (read if end < 0 else len(joined) - end), joined[-2:]
            if read > self._bound:
                self._exchange.too_large = True
                raise httpx2.StreamError("the answer is too long")
            yield halves.replace(part)

    async def aclose(self) -> None:
        await self._held.aclose()
