"""A session with a server, by the official SDK's client; many calls share it.

Importing this module takes a second, because of the SDK.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, cast

import httpx2
import msgspec
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    CallToolRequest,
    CallToolRequestParams,
    Implementation,
    ListToolsResult,
    LoggingMessageNotificationParams,
    PaginatedRequestParams,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from ...protocol.error_codes import CallError, ProviderError
from ...protocol.trace_context import TRACEPARENT, current_traceparent
from ...version import __version__
from ..checked_network import CheckedNetwork
from ..source import SourceNote
from ..source_auth import AuthValues, operator_auth
from ..source_settings import McpSettings
from ..upstream_definition import UpstreamListing
from . import upstream_failures
from .upstream_exchange import UpstreamExchange
from .upstream_failures import UpstreamUnavailableError
from .upstream_http import SourceTransport, recorded_in
from .upstream_listing import FilteredStream, ListingCollector
from .upstream_process import ServerCommand, environment, server_process

_RESUBSCRIBE_S: Final = 5.0
_LINE_EXTRA_BYTES: Final = 64 * 1024
"""The overhead of a message around its answer."""

_result: Final[Any] = TypeAdapter(dict[str, Any])  # the SDK's types are pydantic models
"""The result unchanged: the SDK validates it, and its models would copy all of it twice."""


@dataclass(frozen=True, slots=True)
class UpstreamResult:
    """A tool's result in MCP's format."""

    content: list[dict[str, Any]]
    structured: Any
    failed: bool


class UpstreamSession:
    """A connected server."""

    def __init__(
        self, source: str, client: Client, wake: asyncio.Event, ended: asyncio.Event, removal_notes: list[SourceNote]
    ) -> None:
        self._source = source
        self._client = client
        self._removal_notes = removal_notes
        self.wake = wake
        """Set when the tools may have changed or the server may be gone; the tools are then listed again."""
        self.ended = ended
        """Set when the session has ended."""
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def __repr__(self) -> str:
        return f"<UpstreamSession with {self._source}, {'ended' if self.ended.is_set() else 'open'}>"

    @property
    def title(self) -> str:
        """The server's title."""
        info = self._client.server_info
        return "" if info is None else info.title or info.name

    @property
    def busy(self) -> bool:
        """Whether a call is running."""
        return self._running > 0

    async def listing(self) -> UpstreamListing:
        """Lists the tools, within the limits of a listing.

        Raises:
            UpstreamUnavailableError: the server did not list them.
        """
        self._removal_notes.clear()
        collector = ListingCollector()
        cursor = collector.add_page(await self._page(None))
        while cursor is not None:
            cursor = collector.add_page(await self._page(cursor))
        return collector.listing(self._removal_notes)

    async def _page(self, cursor: str | None) -> ListToolsResult:
        exchange = UpstreamExchange()
        try:
            with recorded_in(exchange):
                return await self._client.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        except MCPError as error:
            if error.code == CONNECTION_CLOSED or exchange.status == 404:
                self.ended.set()
            raise UpstreamUnavailableError(
                f"it did not list its tools: {_message(self._source, error, exchange)}"
            ) from error
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise UpstreamUnavailableError(f"its tool listing is not valid MCP ({where}: {first['msg']})") from error

    async def call(
        self, tool: str, arguments: dict[str, Any], seconds: float, report: Callable[[str, float, float | None], None]
    ) -> UpstreamResult:
        """Calls the tool and returns its result, within ``seconds``. On cancellation or timeout the server is asked to
        cancel the call.

        Raises:
            CallError: there is no result.
        """

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            report(message or "", progress, total)

        exchange = UpstreamExchange(deadline=asyncio.get_running_loop().time() + seconds)
        with self._counting():
            return await self._request(tool, arguments, exchange, on_progress)

    async def wait_idle(self, seconds: float) -> None:
        """Waits up to ``seconds`` for running calls, before the session ends."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()

    @contextmanager
    def _counting(self) -> Iterator[None]:
        self._running += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._running -= 1
            if self._running == 0:
                self._idle.set()

    async def _request(
        self, tool: str, arguments: dict[str, Any], exchange: UpstreamExchange, on_progress: ProgressFnT
    ) -> UpstreamResult:
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments, _meta=_trace_context()))
        try:
            with recorded_in(exchange):
                async with asyncio.timeout_at(exchange.deadline):
                    result: dict[str, Any] = await self._client.session.send_request(
                        request, _result, progress_callback=on_progress
                    )
        except TimeoutError:
            raise upstream_failures.timed_out(self._source, sent=True) from None
        except MCPError as error:
            raise self._failure(error, exchange) from error
        except ValidationError as error:
            raise self._invalid_answer() from error
        if result.get("resultType") == "input_required":
            raise ProviderError(f"{self._source} asks for input during a call, which the daemon does not support.")
        content = result.get("content", [])
        if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
            raise self._invalid_answer()
        return UpstreamResult(content, result.get("structuredContent"), result.get("isError", False) is not False)

    def _invalid_answer(self) -> ProviderError:
        return ProviderError(f"{self._source}'s answer is not valid MCP.", executed="yes")

    def _failure(self, error: MCPError, exchange: UpstreamExchange) -> CallError:
        if exchange.status == 404:
            self.ended.set()
        if exchange.broken or exchange.status == 404 or error.code in {CONNECTION_CLOSED, HEADER_MISMATCH}:
            self.wake.set()
        return upstream_failures.call_failure(self._source, error.code, error.message, exchange)

    async def listen(self) -> None:
        """Subscribes to tool changes for the life of the session, if the server requires a subscription."""
        if self._client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        tools = self._client.server_capabilities.tools
        while tools is not None and tools.list_changed:
            with suppress(MCPError, SubscriptionLost, TimeoutError):
                async with self._client.listen(tools_list_changed=True) as subscription:
                    async for _ in subscription:
                        self.wake.set()
            await asyncio.sleep(_RESUBSCRIBE_S)
            self.wake.set()  # changes in between were not announced


def _trace_context() -> Any:
    """The ``_meta`` of a call: its span, if traces are recorded. MCP has it there for every transport."""
    traceparent = current_traceparent.get()
    return None if traceparent is None else {TRACEPARENT: traceparent}


def _message(source: str, error: MCPError, exchange: UpstreamExchange) -> str:
    return upstream_failures.call_failure(source, error.code, error.message, exchange).message


@asynccontextmanager
async def open_session(
    source: str,
    settings: McpSettings,
    variables: Mapping[str, str],
    network: CheckedNetwork,
    on_log: Callable[[str], None],
    wake: asyncio.Event,
    *,
    auth: AuthValues | None = None,
    connecting: UpstreamExchange | None = None,
) -> AsyncIterator[UpstreamSession]:
    """Starts or connects to the server, yields the session, and ends it after the block.

    ``variables`` are those of ``settings.env``, with their values; ``wake`` becomes the session's event. ``auth``: what
    the requests get instead of the operator's secret; ``connecting`` records how connecting went.

    Raises:
        Exception: the session could not be opened: any exception of the SDK, or a group of them.
    """
    ended = asyncio.Event()
    removal_notes: list[SourceNote] = []

    def end() -> None:
        ended.set()
        wake.set()

    async def on_message(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            wake.set()

    async def log(params: LoggingMessageNotificationParams) -> None:
        data = params.data if isinstance(params.data, str) else msgspec.json.encode(params.data).decode()
        on_log(f"{params.level}: {data}")

    client = Client(
        cast(
            "Any", _transport(settings, variables, network, on_log, end, removal_notes, auth)
        ),  # a context manager that yields streams
        cache=None,
        client_info=Implementation(name="toold", version=__version__),
        message_handler=on_message,
        logging_callback=log,
        log_level="info",
    )
    async with AsyncExitStack() as stack:
        exchange = connecting or UpstreamExchange()
        try:
            with recorded_in(exchange):
                await stack.enter_async_context(client)
        except Exception as error:
            reason = upstream_failures.http_connect_problem(source, exchange)
            if reason is not None:
                raise UpstreamUnavailableError(reason) from error
            raise
        yield UpstreamSession(source, client, wake, ended, removal_notes)


@asynccontextmanager
async def _transport(
    settings: McpSettings,
    variables: Mapping[str, str],
    network: CheckedNetwork,
    on_log: Callable[[str], None],
    on_end: Callable[[], None],
    removal_notes: list[SourceNote],
    auth: AuthValues | None,
) -> AsyncIterator[Any]:
    streams: AbstractAsyncContextManager[Any]
    if settings.command is not None:
        limit = settings.max_answer_bytes + _LINE_EXTRA_BYTES
        streams = server_process(
            ServerCommand(settings.command, environment(variables), settings.cwd, limit), on_log, on_end
        )
        async with streams as (messages, sending):
            yield FilteredStream(messages, removal_notes), sending
        return
    transport = SourceTransport(
        network, lambda: _headers_of(auth or operator_auth(settings.shared_auth)), settings.max_answer_bytes
    )
    async with httpx2.AsyncClient(transport=transport, timeout=None, trust_env=False) as http:
        limit = settings.max_answer_bytes + _LINE_EXTRA_BYTES
        async with streamable_http_client(settings.url or "", http_client=http, max_sse_event_size=limit) as pair:
            yield FilteredStream(pair[0], removal_notes), pair[1]


def _headers_of(values: AuthValues) -> dict[str, str]:
    """Returns the headers with a secret; identity encoding, so that size limits apply."""
    return {"Accept-Encoding": "identity", **values.headers}
