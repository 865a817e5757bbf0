"""A server of revision 2024-11-05 over HTTP with SSE: one stream of messages, and a POST per message to it.

Replaces the SDK's transport, which only logs a failed POST, so that its call would wait until its deadline.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urljoin, urlsplit

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError

from ...protocol.terminal_text import one_line
from .upstream_exchange import CONNECTION_CLOSED
from .upstream_failures import UpstreamUnavailableError

_ENDPOINT_CHARS: Final = 4096
_ANSWERS: Final = 4
"""The maximum number of answers and notifications that are sent at the same time, each on a separate connection. A
server may ask many questions and read the answers slowly.
"""

Messages = MemoryObjectReceiveStream[SessionMessage | Exception]


class PostStream:
    """Sends each message in a POST, in the task of its call. Implements the SDK's ``WriteStream``."""

    def __init__(
        self, http: httpx2.AsyncClient, url: str, inbox: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        """``inbox`` gets an error instead of an answer if the server does not accept a request."""
        self._http = http
        self._url = url
        self._answering = asyncio.Semaphore(_ANSWERS)
        self._inbox = inbox

    def __repr__(self) -> str:
        return f"<PostStream to {urlsplit(self._url).netloc}>"

    async def send(self, item: SessionMessage) -> None:
        """Sends a message; the server's answer comes as an event."""
        body = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        posting = self._http.stream("POST", self._url, content=body, headers={"content-type": "application/json"})
        async with (
            nullcontext() if isinstance(item.message, JSONRPCRequest) else self._answering,
            posting as response,
        ):
            with suppress(httpx2.StreamError):  # too long, or too late; its content does not matter
                await response.aread()
        if response.is_success or not isinstance(item.message, JSONRPCRequest):
            return
        problem = ErrorData(code=CONNECTION_CLOSED, message=f"the server answered with HTTP {response.status_code}")
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            error = JSONRPCError(jsonrpc="2.0", id=item.message.id, error=problem)
            await self._inbox.send(SessionMessage(error))

    async def aclose(self) -> None:
        """Does nothing: the session ends with the stream of events."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


@asynccontextmanager
async def sse_streams(
    http: httpx2.AsyncClient, url: str, max_event_bytes: int, on_end: Callable[[], None]
) -> AsyncIterator[tuple[Messages, PostStream]]:
    """Opens the stream of events, and yields the message streams once the server has named its endpoint.

    ``on_end`` is called when the stream of events ends.

    Raises:
        UpstreamUnavailableError: the server has no such stream, or its endpoint is elsewhere.
        httpx2.HTTPError: the stream cannot be read.
    """
    headers = {"accept": "text/event-stream", "cache-control": "no-store"}
    async with http.stream("GET", url, headers=headers) as response:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code != 200 or kind != "text/event-stream":
            what = f"HTTP {response.status_code}" if response.status_code != 200 else one_line(kind, 60) or "no type"
            raise UpstreamUnavailableError(f"it has no stream of events at this address ({what})")
        events = aiter(httpx2.EventSource(response, max_event_size=max_event_bytes))
        endpoint = await _endpoint(events, url)
        inbox, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        reading = asyncio.create_task(_read(events, inbox), name="server's events")
        reading.add_done_callback(lambda _: on_end())
        try:
            yield received, PostStream(http, endpoint, inbox)
        finally:
            reading.cancel()
            await asyncio.wait([reading])
            for stream in (inbox, received):
                stream.close()


async def _endpoint(events: AsyncIterator[Any], url: str) -> str:
    """Returns the address for messages, which the first event names.

    Raises:
        UpstreamUnavailableError: the address is missing, or at another origin, which would get the source's secret.
    """
    async for event in events:
        if event.event != "endpoint" or len(event.data) > _ENDPOINT_CHARS:
            break
        endpoint: str = urljoin(url, event.data)
        here, there = urlsplit(url), urlsplit(endpoint)
        if (here.scheme, here.netloc) != (there.scheme, there.netloc):
            raise UpstreamUnavailableError(f"its endpoint is at another origin ({one_line(there.netloc, 100)})")
        return endpoint
    raise UpstreamUnavailableError("its first event does not name an endpoint")


async def _read(events: AsyncIterator[Any], inbox: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    """Passes messages on until the stream ends, and then closes ``inbox``, which ends the session."""
    with inbox, suppress(httpx2.HTTPError, httpx2.StreamError, httpx2.SSEError, anyio.BrokenResourceError):
        async for event in events:
            if event.event != "message" or not event.data:
                continue
            try:
                message = jsonrpc_message_adapter.validate_json(event.data, by_name=False)
            except ValidationError as error:
                await inbox.send(error)
            else:
                await inbox.send(SessionMessage(message))
