"""Requests about resources and prompts in one session. Importing this module takes a second, because of the SDK."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import structlog
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated
from mcp_types import (
    CompleteRequest,
    CompleteRequestParams,
    GetPromptRequest,
    GetPromptRequestParams,
    ListPromptsRequest,
    ListResourcesRequest,
    ListResourceTemplatesRequest,
    PaginatedRequestParams,
    ReadResourceRequest,
    ReadResourceRequestParams,
    SubscribeRequest,
    SubscribeRequestParams,
    UnsubscribeRequest,
    UnsubscribeRequestParams,
)
from pydantic import ValidationError

from ...protocol.error_codes import CallError, InvalidArgumentsError, NotFoundError, ProviderError
from ...protocol.json_rpc import INVALID_PARAMS, RESOURCE_NOT_FOUND
from ...protocol.mcp.request_envelope import SERVER_KEY
from ...protocol.terminal_text import one_line
from ..source import SourceNote
from ..source_content import Entry, SourceEvents
from .content_listing import MAX_URI_CHARS, EntryCollector, bounded_completion, is_prompt_result, is_read_result
from .upstream_questions import CallQuestions
from .upstream_session import MakeRequest, UpstreamSession, passed_on

_LIST_TIMEOUT_S: Final = 30.0
"""The timeout of each page of a list."""
_FOLLOW_TIMEOUT_S: Final = 10.0
"""The timeout of each subscription."""
_OF_THE_HOP: Final = frozenset({"resultType", "ttlMs", "cacheScope"})
"""Fields of an answer that the daemon writes itself."""
_RESUBSCRIBE_S: Final = 5.0

_log = structlog.get_logger("toold.sources.mcp")


@dataclass(frozen=True, slots=True)
class ListedContent:
    """The resources, templates and prompts that a server lists, by their URIs, templates and names."""

    resources: Mapping[str, Entry]
    templates: Mapping[str, Entry]
    prompts: Mapping[str, Entry]
    notes: tuple[SourceNote, ...]
    reads: bool
    completes: bool
    subscribes: bool


class ContentRequests:
    """Sends the requests of one session."""

    def __init__(
        self, source: str, session: UpstreamSession, events: SourceEvents, questions: CallQuestions | None = None
    ) -> None:
        """``questions`` asks the server's questions during a request of a client; None: the server cannot ask."""
        self._questions = questions
        self._source = source
        self._session = session
        self._events = events

    def __repr__(self) -> str:
        return f"<ContentRequests of {self._session!r}>"

    async def listing(self) -> ListedContent:
        """Lists the resources, templates and prompts, if the server declares them.

        Raises:
            CallError: the server did not list them.
        """
        offered = self._session.capabilities
        resources, templates, prompts = EntryCollector("uri"), EntryCollector("uriTemplate"), EntryCollector("name")
        if offered.resources is not None:
            await self._collect(resources, ListResourcesRequest, "resources")
            # Some servers with resources do not support templates.
            with suppress(NotFoundError):
                await self._collect(templates, ListResourceTemplatesRequest, "resourceTemplates")
        if offered.prompts is not None:
            await self._collect(prompts, ListPromptsRequest, "prompts")
        return ListedContent(
            resources.entries,
            templates.entries,
            prompts.entries,
            (*resources.notes, *templates.notes, *prompts.notes),
            reads=offered.resources is not None,
            completes=offered.completions is not None,
            subscribes=offered.resources is not None and bool(offered.resources.subscribe),
        )

    async def _collect(self, collector: EntryCollector, request: Any, field: str) -> None:
        cursor: str | None = None
        while True:
            params = PaginatedRequestParams(cursor=cursor)
            page = await self._session.list_page(request(params=params), _LIST_TIMEOUT_S)
            cursor = collector.add_page(page.get(field), page.get("nextCursor"))
            if cursor is None:
                return

    async def read(self, uri: str, seconds: float) -> dict[str, Any]:
        """The result of ``resources/read``.

        Raises:
            CallError: there is no result; NotFoundError if the server has no such resource.
        """

        def make(responses: dict[str, Any] | None, state: str | None) -> ReadResourceRequest:
            params = ReadResourceRequestParams(
                uri=uri, input_responses=responses, request_state=state, _meta=passed_on()
            )
            return ReadResourceRequest(params=params)

        try:
            result = await self._request(make, seconds)
        except (InvalidArgumentsError, ProviderError) as error:
            if _is_unknown(error):
                raise NotFoundError(f"{self._source} has no resource {uri[:200]!r}.") from error
            raise
        return self._checked(result, valid=is_read_result(result))

    async def get_prompt(self, name: str, arguments: Mapping[str, str], seconds: float) -> dict[str, Any]:
        """The result of ``prompts/get``.

        Raises:
            CallError: there is no result.
        """

        def make(responses: dict[str, Any] | None, state: str | None) -> GetPromptRequest:
            params = GetPromptRequestParams(
                name=name,
                arguments=dict(arguments),
                input_responses=responses,
                request_state=state,
                _meta=passed_on(),
            )
            return GetPromptRequest(params=params)

        result = await self._request(make, seconds)
        return self._checked(result, valid=is_prompt_result(result))

    async def complete(self, params: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """The result of ``completion/complete``, with at most 100 values.

        Raises:
            CallError: there is no result.
        """
        try:
            request = CompleteRequest(params=CompleteRequestParams.model_validate({**params, "_meta": passed_on()}))
        except ValidationError as error:
            raise InvalidArgumentsError("The parameters ref, argument and context do not conform to MCP.") from error
        completion = bounded_completion(result := await self._session.request(request, seconds))
        return self._checked(completion or result, valid=completion is not None)

    async def _request(self, make: MakeRequest, seconds: float) -> dict[str, Any]:
        """The result of a method during which MCP allows questions of the server."""
        if self._questions is None:
            return await self._session.request(make(None, None), seconds)
        return await self._session.asking_request(make, seconds, self._questions)

    def _checked(self, result: dict[str, Any], *, valid: bool) -> dict[str, Any]:
        if result.get("resultType") == "input_required":
            raise ProviderError(f"{self._source} asks for input, which MCP does not allow in this request.")
        if not valid:
            raise ProviderError(f"{self._source}'s answer is not valid MCP.")
        kept = {key: value for key, value in result.items() if key not in _OF_THE_HOP}
        meta = kept.pop("_meta", None)
        own = {key: value for key, value in meta.items() if key != SERVER_KEY} if isinstance(meta, dict) else {}
        return {**kept, "_meta": own} if own else kept

    async def follow(self, wanted: Callable[[], frozenset[str]], changed: asyncio.Event) -> None:
        """Reports changes of the wanted resources until it is cancelled. ``changed`` is set when the wanted resources
        change.
        """
        if self._session.is_modern:
            await self._listen(wanted, changed)
        subscribed: set[str] = set()
        while True:
            changed.clear()
            for uri in sorted(subscribed - wanted()):
                subscribed.discard(uri)
                await self._ask(UnsubscribeRequest(params=UnsubscribeRequestParams(uri=uri)), uri)
            for uri in sorted(wanted() - subscribed):
                subscribed.add(uri)
                await self._ask(SubscribeRequest(params=SubscribeRequestParams(uri=uri)), uri)
            await changed.wait()

    async def _ask(self, request: Any, uri: str) -> None:
        try:
            await self._session.request(request, _FOLLOW_TIMEOUT_S)
        except CallError as error:
            _log.warning("subscription refused", source=self._source, uri=one_line(uri, 200), reason=error.message)

    async def _listen(self, wanted: Callable[[], frozenset[str]], changed: asyncio.Event) -> None:
        while True:
            changed.clear()
            uris = sorted(wanted())
            listening = asyncio.create_task(self._report_updates(uris), name=f"updates of {self._source}")
            try:
                await changed.wait()
            finally:
                listening.cancel()
                await asyncio.wait([listening])

    async def _report_updates(self, uris: list[str]) -> None:
        while uris:
            with suppress(MCPError, SubscriptionLost, TimeoutError):
                async with self._session.listening_to(uris) as subscription:
                    async for event in subscription:
                        if isinstance(event, ResourceUpdated) and len(event.uri) <= MAX_URI_CHARS:
                            self._events.resource_updated(self._source, event.uri)
            await asyncio.sleep(_RESUBSCRIBE_S)


def _is_unknown(error: CallError) -> bool:
    """Whether a server answered that it has no such resource. 2026-07-28 has no separate code for this."""
    cause = error.__cause__
    return isinstance(cause, MCPError) and cause.error.code in {RESOURCE_NOT_FOUND, INVALID_PARAMS}
