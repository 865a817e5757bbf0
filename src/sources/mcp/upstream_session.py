"""One session with a server, by the official SDK's client: opened once, listed, and called by many at once.

This module takes a second to import, for the SDK.
"""

import asyncio
import base64
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
from ...version import __version__
from ..checked_network import CheckedNetwork
from ..source import SourceNote
from ..source_settings import ApiKeyAuth, Auth, BasicAuth, McpSettings
from . import upstream_failures
from .upstream_definition import UpstreamListing
from .upstream_failures import UpstreamUnavailableError
from .upstream_http import SourceTransport, UpstreamExchange, noting
from .upstream_listing import ListingCollector, SiftedStream
from .upstream_process import ServerCommand, environment, server_process

_LISTEN_AGAIN_S: Final = 5.0
_LINE_EXTRA_BYTES: Final = 64 * 1024
"""What a message has around its answer."""

_result: Final[Any] = TypeAdapter(dict[str, Any])  # the SDK's own types are models
"""As it came: the SDK holds it against the revision, and its own models would copy all of it twice."""


@dataclass(frozen=True, slots=True)
class UpstreamResult:
    """What a tool answered, in MCP's own form."""

    content: list[dict[str, Any]]
    structured: Any
    failed: bool


class UpstreamSession:
    """A server that is connected."""

    def __init__(
        self, source: str, client: Client, stirred: asyncio.Event, ended: asyncio.Event, left_out: list[SourceNote]
    ) -> None:
        self._source = source
        self._client = client
        self._left_out = left_out
        self.stirred = stirred
        """Set when its tools may be others, or it may be away: list them again."""
        self.ended = ended
        """Set when nothing can be asked of it any more."""
        self._running = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    def __repr__(self) -> str:
        return f"<UpstreamSession with {self._source}, {'ended' if self.ended.is_set() else 'open'}>"

    @property
    def title(self) -> str:
        """What the server calls itself."""
        info = self._client.server_info
        return "" if info is None else info.title or info.name

    @property
    def busy(self) -> bool:
        """A call is under way."""
        return self._running > 0

    async def listing(self) -> UpstreamListing:
        """All of its tools, as far as the bounds of a listing.

        Raises:
            AwayError: it does not list them.
        """
        self._left_out.clear()
        gathering = ListingCollector()
        cursor = gathering.take(await self._page(None))
        while cursor is not None:
            cursor = gathering.take(await self._page(cursor))
        return gathering.listing(self._left_out)

    async def _page(self, cursor: str | None) -> ListToolsResult:
        exchange = UpstreamExchange()
        try:
            with noting(exchange):
                return await self._client.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        except MCPError as error:
            if error.code == CONNECTION_CLOSED or exchange.status == 404:
                self.ended.set()
            raise UpstreamUnavailableError(
                f"it does not list its tools: {_said(self._source, error, exchange)}"
            ) from error
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise UpstreamUnavailableError(
                f"what it says of its tools is not as MCP has it ({where}: {first['msg']})"
            ) from error

    async def call(
        self, tool: str, arguments: dict[str, Any], seconds: float, report: Callable[[str, float, float | None], None]
    ) -> UpstreamResult:
        """What the tool of this name answers within so many seconds. Who gives up, or is out of time, has the server
        told so.

        Raises:
            CallError: there is no result.
        """

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            report(message or "", progress, total)

        exchange = UpstreamExchange(deadline=asyncio.get_running_loop().time() + seconds)
        with self._counted():
            return await self._asked(tool, arguments, exchange, on_progress)

    async def settled(self, seconds: float) -> None:
        """Wait so long for the calls that run: what ends the session would cut them off."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._quiet.wait()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._running += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._running -= 1
            if self._running == 0:
                self._quiet.set()

    async def _asked(
        self, tool: str, arguments: dict[str, Any], exchange: UpstreamExchange, on_progress: ProgressFnT
    ) -> UpstreamResult:
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))
        try:
            with noting(exchange):
                async with asyncio.timeout_at(exchange.deadline):
                    result: dict[str, Any] = await self._client.session.send_request(
                        request, _result, progress_callback=on_progress
                    )
        except TimeoutError:
            raise upstream_failures.timed_out(self._source, sent=True) from None
        except MCPError as error:
            raise self._failure(error, exchange) from error
        except ValidationError as error:
            raise self._not_mcp() from error
        if result.get("resultType") == "input_required":
            raise ProviderError(
                f"{self._source} asks for input in the middle of a call, which nobody is there to give."
            )
        content = result.get("content", [])
        if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
            raise self._not_mcp()
        return UpstreamResult(content, result.get("structuredContent"), result.get("isError", False) is not False)

    def _not_mcp(self) -> ProviderError:
        return ProviderError(f"{self._source}'s answer is not as MCP has it.", executed="yes")

    def _failure(self, error: MCPError, exchange: UpstreamExchange) -> CallError:
        if exchange.status == 404:
            self.ended.set()
        if exchange.broken or exchange.status == 404 or error.code in {CONNECTION_CLOSED, HEADER_MISMATCH}:
            self.stirred.set()
        return upstream_failures.call_failure(self._source, error.code, error.message, exchange)

    async def listen(self) -> None:
        """For as long as it is connected: have the server say when its tools change, where it does so on request."""
        if self._client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        tools = self._client.server_capabilities.tools
        while tools is not None and tools.list_changed:
            with suppress(MCPError, SubscriptionLost, TimeoutError):
                async with self._client.listen(tools_list_changed=True) as subscription:
                    async for _ in subscription:
                        self.stirred.set()
            await asyncio.sleep(_LISTEN_AGAIN_S)
            self.stirred.set()  # what changed meanwhile was told to nobody


def _said(source: str, error: MCPError, exchange: UpstreamExchange) -> str:
    return upstream_failures.call_failure(source, error.code, error.message, exchange).message


@asynccontextmanager
async def open_session(
    source: str,
    settings: McpSettings,
    variables: Mapping[str, str],
    network: CheckedNetwork,
    say: Callable[[str], None],
    stirred: asyncio.Event,
) -> AsyncIterator[UpstreamSession]:
    """A session, lent for the block: the server is started or connected to, and ended or left when the block is.

    ``variables`` are those of ``settings.env``, with their values; ``stirred`` becomes the session's.

    Raises:
        Exception: it cannot be had; whatever the SDK raises, in groups too.
    """
    ended = asyncio.Event()
    left_out: list[SourceNote] = []

    def end() -> None:
        ended.set()
        stirred.set()

    async def heed(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            stirred.set()

    async def log(params: LoggingMessageNotificationParams) -> None:
        data = params.data if isinstance(params.data, str) else msgspec.json.encode(params.data).decode()
        say(f"{params.level}: {data}")

    client = Client(
        cast(
            "Any", _transport(settings, variables, network, say, end, left_out)
        ),  # a context manager of streams, as it wants
        cache=None,
        client_info=Implementation(name="toold", version=__version__),
        message_handler=heed,
        logging_callback=log,
        log_level="info",
    )
    async with AsyncExitStack() as stack:
        exchange = UpstreamExchange()
        try:
            with noting(exchange):
                await stack.enter_async_context(client)
        except Exception as error:
            why = upstream_failures.http_connect_problem(source, exchange)
            if why is not None:
                raise UpstreamUnavailableError(why) from error
            raise
        yield UpstreamSession(source, client, stirred, ended, left_out)


@asynccontextmanager
async def _transport(
    settings: McpSettings,
    variables: Mapping[str, str],
    network: CheckedNetwork,
    say: Callable[[str], None],
    on_end: Callable[[], None],
    left_out: list[SourceNote],
) -> AsyncIterator[Any]:
    streams: AbstractAsyncContextManager[Any]
    if settings.command is not None:
        most = settings.max_answer_bytes + _LINE_EXTRA_BYTES
        streams = server_process(
            ServerCommand(settings.command, environment(variables), settings.cwd, most), say, on_end
        )
        async with streams as (messages, sending):
            yield SiftedStream(messages, left_out), sending
        return
    transport = SourceTransport(network, lambda: _headers_of(settings.auth), settings.max_answer_bytes)
    async with httpx2.AsyncClient(transport=transport, timeout=None, trust_env=False) as http:
        most = settings.max_answer_bytes + _LINE_EXTRA_BYTES
        async with streamable_http_client(settings.url or "", http_client=http, max_sse_event_size=most) as pair:
            yield SiftedStream(pair[0], left_out), pair[1]


def _headers_of(auth: Auth | None) -> dict[str, str]:
    """The source's secret, as it is now, in the header that it goes in. An unpacked answer is bounded by its size."""
    plain = {"Accept-Encoding": "identity"}
    if auth is None:
        return plain
    secret = auth.secret.read()
    if isinstance(auth, ApiKeyAuth):
        return {**plain, auth.name: secret}
    if isinstance(auth, BasicAuth):
        pair = base64.b64encode(f"{auth.username}:{secret}".encode()).decode()
        return {**plain, "Authorization": f"Basic {pair}"}
    return {**plain, "Authorization": f"Bearer {secret}"}
