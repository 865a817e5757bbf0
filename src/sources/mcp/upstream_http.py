"""An HTTP transport for the MCP SDK: checked addresses, limited answers, and the source's secret.

The SDK reports HTTP failures as message text only. Here each call has an ``UpstreamExchange`` in a context variable,
which the SDK's tasks inherit. It records the outcome of the request.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from contextvars import ContextVar
from typing import Final

import httpcore
import httpx
import httpx2
import msgspec

from ...protocol.json_pieces import MAX_VALUES, has_few_values
from ...protocol.terminal_text import one_line
from ...tools import SecretUnavailableError
from ..checked_network import CheckedNetwork, ForbiddenAddressError
from ..json_surrogates import LoneSurrogates
from ..oauth.oauth_requests import OAuthRequests
from ..oauth.sign_in_values import SignIn, SignInNeededError, TokenUnavailableError
from ..read_rate import MESSAGES_PER_S, ReadRate, message_cost
from .upstream_exchange import CONNECTION_CLOSED, TOO_MANY_VALUES, UpstreamExchange

_NOTIFICATION_S: Final = 10.0
"""The timeout of the response to a notification. Requests queue behind it."""
STREAMS_PER_S: Final = 10.0
STREAMS_AT_ONCE: Final = 20.0
"""The rate at which streams are opened by GET. A server may end each stream at once and demand the next one."""
_CLOSE_S: Final = 1.5
"""The timeout of ending a session."""
_EVENT_ENDS: Final = (b"\n\n", b"\n\r\n", b"\r\r")
_LINES_PER_EVENT: Final = 3
_DATA: Final = re.compile(rb"(?:^|[\r\n])data:([^\r\n]*)")
_FAILURES: Final = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, httpx.InvalidURL, OSError)


current_exchange: ContextVar[UpstreamExchange | None] = ContextVar("exchange", default=None)


@contextmanager
def recorded_in(exchange: UpstreamExchange) -> Iterator[None]:
    """Within the block, records this task's requests in ``exchange``."""
    token = current_exchange.set(exchange)
    try:
        yield
    finally:
        current_exchange.reset(token)


class _Message(msgspec.Struct):
    id: str | int | None = None
    method: str | None = None


class SourceTransport(httpx2.AsyncBaseTransport):
    """Implements ``httpx2``'s transport on a source's network."""

    def __init__(
        self,
        network: CheckedNetwork,
        headers: Callable[[], Mapping[str, str]],
        max_bytes: int,
        oauth: OAuthRequests | None = None,
    ) -> None:
        """``headers`` returns the source's headers for each request; ``oauth`` adds the token. Answers are limited to
        ``max_bytes``.
        """
        self._oauth = oauth
        self._network = network
        self._headers = headers
        self._max_bytes = max_bytes
        self._rate = ReadRate(MESSAGES_PER_S)
        self._streams = ReadRate(STREAMS_PER_S, burst=STREAMS_AT_ONCE)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Returns the server's response, or a JSON-RPC error if there is none.

        An exception here would end the session of all callers of this server.
        """
        exchange = current_exchange.get()
        body = await request.aread()
        deadline = None if exchange is None else exchange.deadline
        if request.method == "DELETE":
            deadline = asyncio.get_running_loop().time() + _CLOSE_S
        elif body:
            message = msgspec.json.decode(body, type=_Message)
            if message.id is None or message.method is None:  # a notification, or the answer to a question
                deadline = asyncio.get_running_loop().time() + _NOTIFICATION_S
                exchange = None if message.method is None else exchange
        recorded = exchange or UpstreamExchange()
        try:
            async with asyncio.timeout_at(deadline):
                if request.method == "GET":
                    await asyncio.sleep(self._streams.consume())
                return await self._authorized(request, body, recorded)
        except SignInNeededError as error:
            recorded.refused, failure = error, "no sign-in"
        except TokenUnavailableError as error:
            recorded.refused, failure = str(error), "no token"
        except (ForbiddenAddressError, SecretUnavailableError) as error:
            recorded.forbidden = failure = str(error)
        except _CompressedError as error:
            recorded.unreadable = failure = str(error)
        except (*_FAILURES, TimeoutError) as error:
            recorded.broken, failure = True, f"no answer ({type(error).__name__})"
        error_body = {"jsonrpc": "2.0", "id": None, "error": {"code": CONNECTION_CLOSED, "message": failure}}
        return httpx2.Response(502, json=error_body, request=request)

    async def _authorized(self, request: httpx2.Request, body: bytes, exchange: UpstreamExchange) -> httpx2.Response:
        """Sends the request. If the server refuses the token (401 or 403, so it has done nothing), sends it once more
        with another token.

        Raises:
            SignInNeededError, TokenUnavailableError: the caller or the operator must sign in first.
        """
        if self._oauth is None:
            return await self._send(request, body, exchange, {})
        used = await self._oauth.sign_in()
        response = await self._send(request, body, exchange, _authorization(used))
        if response.status_code in {401, 403}:
            await response.aclose()
            challenge = response.headers.get("www-authenticate", "")
            if not await self._oauth.refused(response.status_code, challenge, used):
                return httpx2.Response(response.status_code, request=request)
            response = await self._send(request, body, exchange, _authorization(await self._oauth.sign_in()))
            if response.status_code == 401:
                await response.aclose()
                raise self._oauth.needed()
        return response

    async def _send(
        self, request: httpx2.Request, body: bytes, exchange: UpstreamExchange, authorization: Mapping[str, str]
    ) -> httpx2.Response:
        headers = httpx.Headers(request.headers.raw)
        headers.update(self._headers())
        headers.update(authorization)
        forwarded = httpx.Request(request.method, str(request.url), headers=headers, content=body)
        async with AsyncExitStack() as stack:
            connection = await stack.enter_async_context(self._network.acquire())
            answer = await stack.enter_async_context(connection.answer(forwarded, exchange.mark_sent))
            exchange.status, exchange.retry_after = answer.status_code, answer.headers.get("retry-after")
            coding = answer.headers.get("content-encoding", "identity").strip().lower()
            if coding not in {"", "identity"}:  # a few bytes can expand to gigabytes
                raise _CompressedError(
                    f"it is compressed ({one_line(coding, 20)}), although the daemon asked for identity"
                )
            streams = answer.headers.get("content-type", "").startswith("text/event-stream")
            if body:
                self._rate.add_request()
            stream = _Body(answer, stack.pop_all(), exchange, self._max_bytes, self._rate if streams else None)
            return httpx2.Response(answer.status_code, headers=answer.headers.raw, stream=stream, request=request)


def _authorization(sign_in: SignIn | None) -> Mapping[str, str]:
    return {} if sign_in is None else {"Authorization": f"Bearer {sign_in.access_token}"}


class _CompressedError(Exception):
    """The answer is compressed."""


class _Body(httpx2.AsyncByteStream):
    """The body of a response, limited in size, per event for event streams, and by the call's deadline.

    Failures are raised as ``StreamError``, which the SDK attributes to one request.
    """

    def __init__(
        self,
        answer: httpx.Response,
        resources: AsyncExitStack,
        exchange: UpstreamExchange,
        max_bytes: int,
        rate: ReadRate | None,
    ) -> None:
        """``rate`` limits the events of an event stream; None for other bodies, which have one message."""
        self._answer = answer
        self._resources = resources
        self._exchange = exchange
        self._max_bytes = max_bytes
        self._rate = rate

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts, read, before, surrogates = self._answer.aiter_raw(), 0, b"", LoneSurrogates()
        held: list[bytes] = []
        while True:
            try:
                async with self._exchange.timeout():
                    part = await anext(parts, None)
                    if self._rate is not None and part is not None:
                        events = max(1, part.count(b"\n") // _LINES_PER_EVENT)
                        await asyncio.sleep(self._rate.consume(message_cost(part, events)))
            except (*_FAILURES, TimeoutError) as error:
                self._exchange.broken = True
                raise httpx2.StreamError(f"the answer was interrupted ({type(error).__name__})") from error
            if part is None:
                yield self._checked(held) + surrogates.partial
                return
            read, end = read + len(part), 0
            if self._rate is not None:
                joined = before + part
                ends = [joined.rfind(mark) + len(mark) for mark in _EVENT_ENDS if mark in joined]
                end = max(0, max(ends, default=0) - len(before))
                read, before = (len(part) - end if end > 0 else read), joined[-2:]
            if read > self._max_bytes:
                self._exchange.too_large = True
                raise httpx2.StreamError("the answer is too long")
            held.append(surrogates.replace(part[:end]))
            if end > 0:
                whole, held = self._checked(held), []
                yield whole
            held.append(surrogates.replace(part[end:]))

    def _checked(self, parts: Sequence[bytes]) -> bytes:
        """Joins the parts of one message, or of several events.

        Raises:
            StreamError: the SDK would parse too many values on the event loop.
        """
        whole = b"".join(parts)
        if whole.count(b",") > MAX_VALUES:
            json = whole if self._rate is None else b"".join(_DATA.findall(whole))
            if not has_few_values(json):
                self._exchange.unreadable = TOO_MANY_VALUES
                raise httpx2.StreamError(TOO_MANY_VALUES)
        return whole

    async def aclose(self) -> None:
        await self._resources.aclose()
