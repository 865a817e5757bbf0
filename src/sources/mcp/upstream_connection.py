"""Opens the session with a server: starts its program or connects over HTTP, and receives its notifications.

Importing this module takes a second, because of the SDK.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, cast

import httpx2
import msgspec
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import (
    Implementation,
    LoggingMessageNotificationParams,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ResourceUpdatedNotification,
    SamplingCapability,
    SamplingToolsCapability,
    ToolListChangedNotification,
)

from ...version import __version__
from ..checked_network import CheckedNetwork
from ..oauth.oauth_requests import OAuthRequests
from ..program_process import environment
from ..source import SourceNote
from ..source_auth import AuthValues, operator_auth
from ..source_content import NoSourceEvents, SourceEvents
from ..source_settings import McpSettings
from . import upstream_failures
from .announced_changes import AnnouncedChanges
from .caller_capabilities import CapabilityStream
from .content_listing import MAX_URI_CHARS
from .server_container import (
    client_environment,
    container_command,
    container_name,
    container_program,
    remove_container,
)
from .server_messages import ServerMessages
from .server_requests import ServerRequests
from .session_questions import SessionQuestions
from .sse_transport import sse_streams
from .upstream_exchange import UpstreamExchange
from .upstream_failures import UpstreamUnavailableError
from .upstream_http import SourceTransport, current_exchange, recorded_in
from .upstream_process import ServerCommand, Streams, server_process
from .upstream_session import UpstreamSession

_LIST_CHANGES: Final = (ToolListChangedNotification, PromptListChangedNotification, ResourceListChangedNotification)
_NO_EVENTS: Final = NoSourceEvents()
_LINE_EXTRA_BYTES: Final = 64 * 1024
"""The bytes of a message around its answer."""


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
    oauth: OAuthRequests | None = None,
    connecting: UpstreamExchange | None = None,
    events: SourceEvents = _NO_EVENTS,
) -> AsyncIterator[UpstreamSession]:
    """Starts or connects to the server, yields the session, and ends it after the block.

    ``variables`` are the variables of ``settings.env`` with their values; ``wake`` becomes the session's event.
    ``auth`` replaces the operator's secret in requests; ``oauth`` provides their tokens. ``connecting`` records the
    outcome of connecting. ``events`` receives updates of resources and log messages.

    Raises:
        Exception: the session could not be opened; any exception of the SDK, or a group of such exceptions.
    """
    ended = asyncio.Event()
    removal_notes: list[SourceNote] = []

    def end() -> None:
        ended.set()
        wake.set()

    changes = AnnouncedChanges(wake)

    async def on_message(message: object) -> None:
        if isinstance(message, _LIST_CHANGES):
            changes.add()
        elif isinstance(message, ResourceUpdatedNotification) and len(message.params.uri) <= MAX_URI_CHARS:
            events.resource_updated(source, message.params.uri)

    async def log(params: LoggingMessageNotificationParams) -> None:
        data = params.data if isinstance(params.data, str) else msgspec.json.encode(params.data).decode()
        on_log(f"{params.level}: {data}")
        events.logged(source, params.level, params.logger, params.data)

    questions = SessionQuestions(current_exchange)
    client = Client(
        cast(
            "Any", _transport(source, settings, variables, network, on_log, end, removal_notes, auth, oauth)
        ),  # a context manager that yields streams
        cache=None,
        mode="legacy" if settings.transport == "sse" else "auto",
        client_info=Implementation(name="toold", version=__version__),
        message_handler=on_message,
        logging_callback=log,
        log_level="info",
        elicitation_callback=questions.elicit,
        sampling_callback=None if settings.sampling == "off" else questions.sample,
        sampling_capabilities=SamplingCapability(tools=SamplingToolsCapability())
        if settings.sampling == "client"
        else SamplingCapability(),
        list_roots_callback=questions.list_roots,
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
        stack.callback(changes.close)
        yield UpstreamSession(source, client, wake, ended, removal_notes, questions, changes)


@asynccontextmanager
async def _transport(
    source: str,
    settings: McpSettings,
    variables: Mapping[str, str],
    network: CheckedNetwork,
    on_log: Callable[[str], None],
    on_end: Callable[[], None],
    removal_notes: list[SourceNote],
    auth: AuthValues | None,
    oauth: OAuthRequests | None,
) -> AsyncIterator[Any]:
    requests = ServerRequests(source)
    if settings.runs_program:
        async with _started(source, settings, variables, on_log, on_end) as (messages, sending):
            yield ServerMessages(messages, removal_notes, requests), CapabilityStream(sending, requests)
        return
    transport = SourceTransport(
        network, lambda: _headers_of(auth or operator_auth(settings.shared_auth)), settings.max_answer_bytes, oauth
    )
    async with httpx2.AsyncClient(transport=transport, timeout=None, trust_env=False) as http:
        limit = settings.max_answer_bytes + _LINE_EXTRA_BYTES
        if settings.transport == "sse":
            async with sse_streams(http, settings.url or "", limit, on_end) as (events, posts):
                yield ServerMessages(events, removal_notes, requests), CapabilityStream(posts, requests)
            return
        async with streamable_http_client(settings.url or "", http_client=http, max_sse_event_size=limit) as pair:
            yield ServerMessages(pair[0], removal_notes, requests), CapabilityStream(pair[1], requests)


@asynccontextmanager
async def _started(
    source: str,
    settings: McpSettings,
    variables: Mapping[str, str],
    on_log: Callable[[str], None],
    on_end: Callable[[], None],
) -> AsyncIterator[Streams]:
    """Starts the server as a program, or in a container."""
    limit = settings.max_answer_bytes + _LINE_EXTRA_BYTES
    if settings.image is None:
        launch = ServerCommand(settings.command or (), environment(variables), settings.cwd, limit)
        async with server_process(launch, on_log, on_end) as streams:
            yield streams
        return
    program, name = container_program(), container_name(source)
    env = client_environment() | environment(variables)
    launch = ServerCommand(container_command(program, name, settings), env, None, limit)
    try:
        async with server_process(launch, on_log, on_end) as streams:
            yield streams
    finally:
        await asyncio.shield(remove_container(program, name, client_environment() | environment({})))


def _headers_of(values: AuthValues) -> dict[str, str]:
    """Returns the headers with a secret. They request identity encoding, so that size limits apply."""
    return {"Accept-Encoding": "identity", **values.headers}
