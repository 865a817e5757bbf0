"""A session with a server, which uses the official SDK's client. Many calls share it.

Importing this module takes a second, because of the SDK.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from mcp.client import Client
from mcp.client.subscriptions import Subscription, SubscriptionLost
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    CallToolRequest,
    CallToolRequestParams,
    ListToolsResult,
    PaginatedRequestParams,
    ServerCapabilities,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from ...protocol.error_codes import CallError, CallTimeoutError, ProviderError
from ...protocol.mcp.mcp_result import ERROR_KEY, METADATA_KEY, RETAINED_KEY, TASK_KEY
from ...protocol.mcp.request_envelope import SERVER_KEY
from ...protocol.request_meta import current_request_meta
from ...protocol.trace_context import TRACEPARENT, callers_traceparent, current_traceparent
from ..source import SourceNote
from ..upstream_definition import UpstreamListing
from . import upstream_failures
from .announced_changes import AnnouncedChanges
from .session_questions import MAX_INPUT_ROUNDS, SessionQuestions, input_responses
from .upstream_exchange import UpstreamExchange
from .upstream_failures import UpstreamUnavailableError
from .upstream_http import recorded_in
from .upstream_listing import ListingCollector
from .upstream_questions import CallQuestions
from .upstream_tasks import UpstreamTask, task_kind

_RESUBSCRIBE_S: Final = 5.0
_STATE_ONLY_S: Final = 0.25
"""The delay before a call is repeated if its result has only a state."""

_OWN_KEYS: Final = frozenset({SERVER_KEY, METADATA_KEY, TASK_KEY})
"""Keys that this daemon writes itself in the ``_meta`` of a result."""
_OF_FAILURES: Final = frozenset({ERROR_KEY, RETAINED_KEY})
"""The key that another toold writes in the ``_meta`` of a failed result. It is not trusted in other results."""

MakeRequest = Callable[[dict[str, Any] | None, str | None], Any]
"""Makes a request of the SDK's types, with the answers to the server's questions and its state."""

_result: Final[Any] = TypeAdapter(dict[str, Any])  # the SDK's types are pydantic models
"""Leaves the result unchanged: the SDK validates it, and its models would copy all of it twice."""


@dataclass(frozen=True, slots=True)
class UpstreamResult:
    """A tool's result in MCP's format."""

    content: list[dict[str, Any]]
    structured: Any
    failed: bool
    meta: dict[str, Any] | None = None
    """The result's ``_meta``, without the server's name, which this daemon's name replaces."""


class UpstreamSession:
    """A connected server."""

    def __init__(
        self,
        source: str,
        client: Client,
        wake: asyncio.Event,
        ended: asyncio.Event,
        removal_notes: list[SourceNote],
        questions: SessionQuestions,
        changes: AnnouncedChanges,
    ) -> None:
        self._changes = changes
        self._questions = questions
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
    def instructions(self) -> str | None:
        """The server's instructions for models."""
        return self._client.instructions

    @property
    def capabilities(self) -> ServerCapabilities:
        """The capabilities that the server declares."""
        return self._client.server_capabilities

    @property
    def is_modern(self) -> bool:
        """Whether the server speaks a revision in which one request subscribes to changes (``listening_to``)."""
        return self._client.protocol_version in MODERN_PROTOCOL_VERSIONS

    def listening_to(self, uris: list[str]) -> AbstractAsyncContextManager[Subscription]:
        """A subscription to changes of these resources, in a modern revision."""
        return self._client.listen(resource_subscriptions=uris)

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
        offered = self.capabilities
        if offered.tools is None and (offered.resources is not None or offered.prompts is not None):
            return UpstreamListing(())  # a server that declares nothing may have tools
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
                f"it did not list its tools: {_reason(self._source, error, exchange)}"
            ) from error
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise UpstreamUnavailableError(f"its tool listing is not valid MCP ({where}: {first['msg']})") from error

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        seconds: float,
        report: Callable[[str, float, float | None], float],
        questions: CallQuestions,
        *,
        as_task: bool = False,
    ) -> UpstreamResult:
        """Calls the tool and returns its result within ``seconds``, not counting the time for which ``questions`` of
        the server wait. After each progress report, the call has the seconds that ``report`` returns. On cancellation
        or timeout the server is asked to cancel the call. ``as_task``: the server runs the tool only as a task.

        Raises:
            CallError: there is no result.
        """

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            exchange.extend(report(message or "", progress, total))

        def make(responses: dict[str, Any] | None, state: str | None) -> CallToolRequest:
            params = CallToolRequestParams(
                name=tool,
                arguments=arguments,
                input_responses=responses,
                request_state=state,
                _meta=passed_on(),
            )
            return CallToolRequest(params=params)

        exchange = UpstreamExchange(deadline=asyncio.get_running_loop().time() + seconds, questions=questions)
        with self._counting(), self._questions.running(exchange):
            if as_task and (kind := task_kind(self.capabilities)) is not None:
                task = UpstreamTask(self._source, self._send, exchange, on_progress, kind)
                return self._read(await task.run(make(None, None), seconds))
            return self._read(await self._rounds(make, exchange, on_progress))

    async def request(self, request: Any, seconds: float) -> dict[str, Any]:
        """Sends any other request of the SDK's types, and returns its result unchanged, within ``seconds``.

        Raises:
            CallError: there is no result; its cause is the SDK's error.
        """
        exchange = UpstreamExchange(deadline=asyncio.get_running_loop().time() + seconds)
        with self._counting():
            return await self._send(request, exchange, None)

    async def asking_request(self, make: MakeRequest, seconds: float, questions: CallQuestions) -> dict[str, Any]:
        """Sends a request during which the server may ask, as ``call`` does, and returns its result unchanged.

        Raises:
            CallError: there is no result; its cause is the SDK's error.
        """
        exchange = UpstreamExchange(deadline=asyncio.get_running_loop().time() + seconds, questions=questions)
        with self._counting(), self._questions.running(exchange):
            return await self._rounds(make, exchange, None)

    async def list_page(self, request: Any, seconds: float) -> dict[str, Any]:
        """Sends the request of a page of a list, as ``request`` does, but a broken connection ends the session.

        Raises:
            CallError: there is no result; its cause is the SDK's error.
        """
        exchange = UpstreamExchange(deadline=asyncio.get_running_loop().time() + seconds)
        try:
            with self._counting():
                return await self._send(request, exchange, None)
        except CallError as error:
            # Not by the code CONNECTION_CLOSED: servers also answer -32000 for other errors.
            if exchange.broken and not isinstance(error, CallTimeoutError):
                self.ended.set()
            raise

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

    async def _rounds(
        self, make: MakeRequest, exchange: UpstreamExchange, on_progress: ProgressFnT | None
    ) -> dict[str, Any]:
        """Repeats a request with the answers to the server's questions and its state until it has a result."""
        responses: dict[str, Any] | None = None
        state: str | None = None
        for _ in range(MAX_INPUT_ROUNDS + 1):
            result = await self._send(make(responses, state), exchange, on_progress)
            if result.get("resultType") != "input_required":
                return result
            with exchange.clock_stopped():
                responses = await input_responses(self._source, result, exchange.questions)
            state = result.get("requestState")
            if responses is None:
                await asyncio.sleep(_STATE_ONLY_S)  # the server wants the call again, later
        raise ProviderError(f"{self._source} asked for input more than {MAX_INPUT_ROUNDS} times.", executed="maybe")

    async def _send(
        self, request: Any, exchange: UpstreamExchange, on_progress: ProgressFnT | None = None
    ) -> dict[str, Any]:
        try:
            with recorded_in(exchange):
                async with exchange.timeout():
                    result: dict[str, Any] = await self._client.session.send_request(
                        request, _result, progress_callback=on_progress
                    )
        except TimeoutError:
            raise upstream_failures.timed_out(self._source, sent=True) from None
        except MCPError as error:
            raise self._failure(error, exchange) from error
        except (ValueError, RecursionError) as error:  # from the SDK: invalid, or nested too deeply to validate
            raise self._invalid_answer() from error
        return result

    def _read(self, result: Mapping[str, Any]) -> UpstreamResult:
        content = result.get("content", [])
        is_list = isinstance(content, list) and all(isinstance(block, dict) for block in content)
        if not is_list or (not content and "task" in result):  # a task that was not requested
            raise self._invalid_answer()
        is_failed = result.get("isError", False) is not False
        return UpstreamResult(content, result.get("structuredContent"), is_failed, _meta_of(result))

    def _invalid_answer(self) -> ProviderError:
        return ProviderError(f"{self._source}'s answer is not valid MCP.", executed="yes")

    def _failure(self, error: MCPError, exchange: UpstreamExchange) -> CallError:
        if exchange.status == 404:
            self.ended.set()
        if exchange.broken or exchange.status == 404 or error.code in {CONNECTION_CLOSED, HEADER_MISMATCH}:
            self.wake.set()
        return upstream_failures.call_failure(self._source, error.code, error.message, exchange, error.data)

    async def listen(self) -> None:
        """Subscribes to changes of the lists for the life of the session, if the server requires a subscription."""
        offered = self.capabilities
        tools = offered.tools is not None and bool(offered.tools.list_changed)
        prompts = offered.prompts is not None and bool(offered.prompts.list_changed)
        resources = offered.resources is not None and bool(offered.resources.list_changed)
        while self.is_modern and (tools or prompts or resources):
            with suppress(MCPError, SubscriptionLost, TimeoutError):
                async with self._client.listen(
                    tools_list_changed=tools, prompts_list_changed=prompts, resources_list_changed=resources
                ) as subscription:
                    async for _ in subscription:
                        self._changes.add()
            await asyncio.sleep(_RESUBSCRIBE_S)
            self.wake.set()  # changes in between were not announced


def _meta_of(result: Mapping[str, Any]) -> dict[str, Any] | None:
    meta = result.get("_meta")
    if not isinstance(meta, dict):
        return None
    is_failed = result.get("isError", False) is not False
    omitted = _OWN_KEYS if is_failed else _OWN_KEYS | _OF_FAILURES
    return {key: value for key, value in meta.items() if key not in omitted} or None


def passed_on() -> Any:
    """The ``_meta`` of a request for the running call: the client's keys for the server, and the span."""
    meta, traceparent = current_request_meta.get(), current_traceparent.get() or callers_traceparent.get()
    if traceparent is None:
        return None if meta is None else dict(meta)
    return {**(meta or {}), TRACEPARENT: traceparent}


def _reason(source: str, error: MCPError, exchange: UpstreamExchange) -> str:
    failure = upstream_failures.call_failure(source, error.code, error.message, exchange)
    return upstream_failures.without_name(source, failure)
