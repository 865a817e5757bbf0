"""MCP over Streamable HTTP: ``/mcp`` and ``/mcp/{toolset}``. Requests share no state except subscriptions.

headers ▸ body ▸ message ▸ envelope ▸ method ─▶ JSON, or events if anything precedes the answer
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final

import msgspec
import structlog
from starlette.types import Receive, Scope, Send

from ....protocol import json_rpc
from ....protocol.authorization import Authenticate, Authorization
from ....protocol.error_codes import OverCapacityError
from ....protocol.json_rpc import (
    HTTP_STATUS,
    INVALID_REQUEST,
    MAX_BATCH,
    MalformedMessage,
    Message,
    MessageProblem,
    RpcNotification,
    RpcReply,
    RpcRequest,
)
from ....protocol.mcp.mcp_revision import DEFAULT_REVISION, STATELESS
from ....protocol.mcp.request_envelope import (
    METHOD_HEADER,
    NAME_HEADER,
    VERSION_HEADER,
    RequestEnvelope,
    client_of,
    http_envelope,
    revision_of_notification,
)
from ....protocol.mcp.tool_entry import official_types
from ....protocol.questions.client_question import kinds_declared
from ....protocol.tool_call import Principal
from ....protocol.trace_context import TRACEPARENT
from ....protocol.user_credential import USER_HEADER
from ....serving import COMPLETE, PEER, HttpPeer
from ....tools import ResultText, ToolsetView
from ...dispatch import Router
from ...observability.logging_setup import bind_session, shown_content
from ...resource_host import ResourceHost
from ..http_intake import HttpIntake, Refuse
from ..http_io import EventStream, read_headers, send_json, send_rpc_refusal
from ..request_guard import METHODS, RequestRefused, admit, no_such_toolset
from .ended_clients import EndedClients
from .mcp_caller import (
    RESULT_TEXT_HEADER,
    SESSION_HEADER,
    McpCaller,
    Unsent,
    make_label,
    read_label,
    request_label,
)
from .mcp_calls import McpCalls
from .mcp_methods import McpMethods
from .mcp_tasks import McpTasks

_READ: Final = (
    *("accept", "authorization", "content-encoding", "content-type", "host", "origin", USER_HEADER),
    *(SESSION_HEADER, VERSION_HEADER, METHOD_HEADER, NAME_HEADER, RESULT_TEXT_HEADER, TRACEPARENT),
)
_HEADERS: Final = {name.encode(): name for name in _READ}
"""The headers that are read, in lower case."""

_log = structlog.get_logger("toold.mcp")


class AdmittedMessage(msgspec.Struct, frozen=True):
    """One admitted request, before its messages are decoded."""

    access: Authorization
    toolset: str
    headers: Mapping[str, str]
    receive: Receive
    send: Send
    streams: bool
    unsent: list[Unsent]


class McpServer:
    """The ASGI app of ``/mcp``."""

    def __init__(
        self,
        router: Router,
        intake: HttpIntake,
        *,
        origins: tuple[str, ...],
        authenticate: Authenticate,
        instructions: Callable[[ToolsetView], str],
        metadata: Callable[[str | None], str | None],
        resources: ResourceHost,
    ) -> None:
        self._router = router
        self._intake = intake
        # The allowed origins of pages of other sites.
        self._origins = origins
        self._authenticate = authenticate
        self.metadata = metadata
        """Maps a toolset or None to the URL of its OAuth metadata; to None without an issuer."""
        self.on_unknown_request: Callable[[object, str, str], None] = lambda *_: None
        """Called with the id, the client's label and the principal's name if the request to cancel does not run on this
        node.
        """
        self._ended = EndedClients()
        tasks = McpTasks(router)
        self._calls = McpCalls(router, tasks)
        self._methods = McpMethods(router, self._calls, tasks, instructions, resources.methods, resources.followers)

    def __repr__(self) -> str:
        return f"<McpServer {self._calls!r}>"

    def tools_changed(self) -> None:
        """Notifies the listening clients whose listing has changed, after a change of the tool catalog."""
        self._methods.subscriptions.tools_changed()
        self._methods.streams.tools_changed()

    def close_unauthorized(self, denial_reason: Callable[[Authorization], str | None]) -> None:
        """Ends listening streams whose authorization is no longer valid; further requests get a 401."""
        self._methods.subscriptions.close_unauthorized(denial_reason)
        self._methods.streams.close_unauthorized(denial_reason)

    def close_streams(self) -> None:
        """Ends the streams of listening clients at shutdown."""
        self._methods.subscriptions.close()
        self._methods.streams.close()

    async def warm_up(self) -> None:
        """Imports the SDK's types in a thread, so that the first listing does not wait for the import."""
        await asyncio.to_thread(official_types)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        post = await self.admit(scope, receive, send)
        whole = COMPLETE in scope.get("extensions", ())
        if isinstance(post, RequestRefused):
            await refuse_request(send, post, close=whole)
            return
        try:
            async with self._intake.serving(partial(refuse_request, send)):
                if scope["method"] != "POST":
                    await self._serve_client(scope["method"], post)
                    return
                message, size = await self.receive(post, whole=whole)
                if isinstance(message, RpcRequest):
                    await self._request(post, message, size)
                else:
                    await self._take(post, message, size)
        finally:
            for answer in post.unsent:
                answer.close()

    async def admit(self, scope: Scope, receive: Receive, send: Send) -> AdmittedMessage | RequestRefused:
        """Checks a request by its headers, and takes a place among the authenticated connections."""
        headers = read_headers(scope, _HEADERS)
        requested: str | None = scope["toolset"]
        metadata = self.metadata(requested)
        admitted = await admit(
            scope["method"],
            headers,
            scheme=scope["scheme"],
            authenticate=self._authenticate,
            origins=self._origins,
            metadata=metadata,
        )
        if isinstance(admitted, RequestRefused):
            return admitted
        peer: HttpPeer = scope["state"][PEER]
        excess = self._intake.refuse_excess(peer)
        if excess is not None:
            return excess
        catalog, access = self._router.catalog, admitted.access
        names = catalog.names
        toolset = access.default_toolset(names, catalog.default) if requested is None else requested
        if toolset not in (usable := access.usable_toolsets(names)):
            return no_such_toolset(toolset, usable, access, metadata)
        label = headers.get(SESSION_HEADER)
        if label is not None and headers.get(VERSION_HEADER) not in STATELESS:
            if read_label(label) is None:
                return RequestRefused(404, f"The {SESSION_HEADER} is unknown; send initialize again.")
            if (access.principal.name, label) in self._ended:
                return RequestRefused(404, f"The {SESSION_HEADER} was ended by DELETE; send initialize again.")
        return AdmittedMessage(access, toolset, headers, receive, send, admitted.streams, [])

    def serving(self, refuse: Refuse) -> AbstractAsyncContextManager[None]:
        """The block in which one request is served (``HttpIntake.serving``)."""
        return self._intake.serving(refuse)

    async def receive(self, post: AdmittedMessage, *, whole: bool) -> tuple[Message | list[Message], int]:
        """Reads a request's messages; also returns their size.

        Raises:
            Exception: as ``HttpIntake.receive``, for the block of ``serving``.
        """
        return await self._intake.receive(
            post.receive, post.access.principal.name, json_rpc.decode, json_rpc.decode_long, whole=whole
        )

    async def listen(
        self, access: Authorization, toolset: str, label: str, receive: Receive, stream: EventStream
    ) -> None:
        """Sends notifications to the client with this label until it disconnects.

        Raises:
            OverCapacityError: too many clients follow something already.
        """
        await self._methods.streams.listen(access, toolset, label, receive, stream)

    def take_reply(self, reply: RpcReply, label: str | None, principal: Principal) -> MessageProblem | None:
        """Passes a client's answer to its question. Returns the problem if the answer is refused."""
        return self._calls.take_reply(reply, label, principal)

    def cancel(self, request_id: object, label: str, principal: str) -> None:
        """Cancels a client's running call by its JSON-RPC id, here or at another node; the call is not answered."""
        if not self.cancel_here(request_id, label, principal):
            self.on_unknown_request(request_id, label, principal)

    def cancel_here(self, request_id: object, label: str, principal: str) -> bool:
        """Cancels a client's call if it runs here. Returns whether it runs here."""
        return self._calls.cancel(request_id, label, principal)

    async def _serve_client(self, method: str, post: AdmittedMessage) -> None:
        """Serves a GET, which opens the stream of the client with this label, or a DELETE, which ends the client."""
        label = post.headers.get(SESSION_HEADER)
        named = None if label is None else read_label(label)
        if label is None or named is None or post.headers.get(VERSION_HEADER) in STATELESS:
            message = "GET and DELETE need the Mcp-Session-Id of initialize; 2026-07-28 has subscriptions/listen."
            await refuse_request(post.send, RequestRefused(405, message, (("allow", METHODS),)))
            return
        self._router.node_tokens.require_mark_here(named.node)
        if method == "DELETE":
            self._ended.add(post.access.principal.name, label)
            self._methods.streams.end(post.access.principal.name, label)
            await send_json(post.send, b"", 200)
        else:
            bind_session(label)
            stream = EventStream(post.send)
            try:
                await self._methods.streams.listen(post.access, post.toolset, label, post.receive, stream)
            except OverCapacityError as error:
                await refuse_request(post.send, RequestRefused(503, error.message, (("retry-after", "5"),)))

    async def _take(
        self,
        post: AdmittedMessage,
        message: RpcNotification | RpcReply | MalformedMessage | list[Message],
        size: int,
    ) -> None:
        """Serves a message that is not a request."""
        match message:
            case list():
                await self._batch(post, message, size)
            case MalformedMessage():
                _log.info("message refused", code=message.problem.code, reason=shown_content(message.problem.message))
                await send_json(post.send, json_rpc.failure(message.id, message.problem), 400)
            case RpcNotification() | RpcReply():
                problem = self._handle_notification(post, message)
                if problem is None:
                    await send_json(post.send, b"", 202)
                else:
                    await send_json(post.send, json_rpc.failure(None, problem), 400)

    async def _request(self, post: AdmittedMessage, request: RpcRequest, size: int) -> None:
        stream = EventStream(post.send) if post.streams else None
        caller = _caller(post, request, size, stream, self._router.node_tokens.mark)
        if isinstance(caller, MessageProblem):
            _log.info("request refused", reason=caller.message)
            await send_json(post.send, json_rpc.failure(request.id, caller), HTTP_STATUS[caller.code])
            return
        bind_session(caller.label)
        answer, status = await self.answer(request, caller), 200
        if isinstance(answer, MessageProblem):
            if caller.envelope.revision.stateless:
                status = HTTP_STATUS[answer.code]
            answer = json_rpc.failure(request.id, answer)
        if answer is None:  # cancelled, or the client disconnected
            await (send_json(post.send, b"", 202) if stream is None else stream.write(b"", last=True))
        elif stream is not None and stream.started:
            await stream.write(json_rpc.event(answer), last=True)
        else:
            named = [(SESSION_HEADER.encode(), caller.label.encode())] if request.method == "initialize" else []
            await send_json(post.send, answer, status, named)

    async def answer(self, request: RpcRequest, caller: McpCaller) -> bytes | MessageProblem | None:
        """Answers a request; None if no answer is wanted, because the client disconnected or cancelled the request."""
        if request.method == "tools/call":
            return await self._calls.run(request, caller)
        return await self._methods.answer(request, caller)

    async def _batch(self, post: AdmittedMessage, batch: list[Message], size: int) -> None:
        """Answers the requests of a batch, which run concurrently, with one array."""
        revision = revision_of_notification(post.headers)
        if isinstance(revision, MessageProblem) or not revision.batches or not 0 < len(batch) <= MAX_BATCH:
            message = (
                f"Send one message per POST; only {DEFAULT_REVISION.name} has batches, of up to {MAX_BATCH} messages."
            )
            await send_json(post.send, json_rpc.failure(None, MessageProblem(INVALID_REQUEST, message)), 400)
            return
        answers = await asyncio.gather(*(self._part(post, part, size // len(batch)) for part in batch))
        sent = [answer for answer in answers if answer is not None]
        await send_json(post.send, b"[" + b",".join(sent) + b"]" if sent else b"", 200 if sent else 202)

    async def _part(self, post: AdmittedMessage, part: Message, size: int) -> bytes | None:
        """Returns the answer to one message of a batch, if it needs one."""
        match part:
            case RpcRequest():
                caller = _caller(post, part, size, None, self._router.node_tokens.mark)
                answer = caller if isinstance(caller, MessageProblem) else await self.answer(part, caller)
                return json_rpc.failure(part.id, answer) if isinstance(answer, MessageProblem) else answer
            case MalformedMessage():
                return json_rpc.failure(part.id, part.problem)
            case RpcNotification() | RpcReply():
                self._handle_notification(post, part)
        return None

    def _handle_notification(self, post: AdmittedMessage, message: RpcNotification | RpcReply) -> MessageProblem | None:
        """Handles a message that needs no answer; returns a problem if the revision does not allow it."""
        revision = revision_of_notification(post.headers)
        if isinstance(revision, MessageProblem):
            return revision
        if isinstance(message, RpcReply):
            if revision.stateless:
                return MessageProblem(INVALID_REQUEST, "The server sends no requests.")
            return self.take_reply(message, post.headers.get(SESSION_HEADER), post.access.principal)
        if message.method == "notifications/cancelled" and not revision.stateless:
            label = post.headers.get(SESSION_HEADER)
            if label is not None:
                self.cancel(message.params.get("requestId"), label, post.access.principal.name)
        return None


def _caller(
    post: AdmittedMessage, request: RpcRequest, size: int, stream: EventStream | None, node_mark: str
) -> McpCaller | MessageProblem:
    """Returns the sender of a request, or the problem with its envelope."""
    headers, params = post.headers, request.params
    sent = headers.get(SESSION_HEADER)
    named = None
    if request.method == "initialize" and headers.get(VERSION_HEADER) not in STATELESS:
        envelope, client = RequestEnvelope(DEFAULT_REVISION), client_of(params.get("clientInfo"))
        label = make_label(client, kinds_declared(params.get("capabilities")), node_mark)
    else:
        opened = http_envelope(request, headers)
        if isinstance(opened, MessageProblem):
            return opened
        envelope, client = opened, opened.client
        named = None if sent is None or envelope.revision.stateless else read_label(sent)
        if sent is None or named is None:
            label = request_label(client)
        else:
            label, client = sent, named.client
            if stream is not None and named.answers:  # without a stream, the client cannot be asked
                envelope = msgspec.structs.replace(envelope, answers=named.answers)
    requested = headers.get(RESULT_TEXT_HEADER)
    return McpCaller(
        post.access,
        post.toolset,
        label,
        client,
        envelope,
        named is not None,
        size,
        post.receive,
        stream,
        post.unsent,
        None if requested is None else _RESULT_TEXTS.get(requested.lower()),
        headers.get(TRACEPARENT),
    )


_RESULT_TEXTS: Final[Mapping[str, ResultText]] = {"json": "json", "prose": "prose"}


async def refuse_request(send: Send, refused: RequestRefused, *, close: bool = False) -> None:
    """Answers a refused request."""
    _log.info("request refused", status=refused.status, reason=refused.message)
    await send_rpc_refusal(send, refused, MessageProblem(INVALID_REQUEST, refused.message), close=close)
