"""MCP of revision 2024-11-05 over HTTP with SSE: a stream of events at ``/sse`` and ``/sse/{toolset}``, and a POST per
message to the address in the stream's first event.

A stream represents its client: the data of ``initialize`` are kept until the stream ends. Its requests take the same
path as requests to ``/mcp``, and their answers are events.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from secrets import token_urlsafe
from typing import Any, Final

import structlog
from starlette.types import Message, Receive, Scope, Send

from ....protocol import json_rpc
from ....protocol.authorization import Authorization
from ....protocol.error_codes import OverCapacityError
from ....protocol.json_rpc import INVALID_REQUEST, MessageProblem, RpcNotification, RpcReply, RpcRequest
from ....protocol.mcp.mcp_revision import SSE_REVISION, McpRevision, negotiated
from ....protocol.mcp.request_envelope import RequestEnvelope, client_of, progress_token
from ....protocol.questions.client_question import QuestionKind, kinds_declared
from ....protocol.tool_call import ClientInfo
from ....serving import COMPLETE
from ...dispatch import NodeTokens
from ...observability.logging_setup import bind_session
from ..http_io import EventStream, send_json, wait_disconnected
from ..request_guard import RequestRefused
from .mcp_caller import McpCaller, Unsent, make_label
from .mcp_server import AdmittedMessage, McpServer, refuse_request

MESSAGES_PATH: Final = "/messages/"
"""The path of messages; the id of their stream follows."""
MAX_OPEN_REQUESTS: Final = 64
"""The maximum number of unanswered requests of one stream; each answer waits until the client reads."""
_ID_BYTES: Final = 24
"""Random bytes in the id of a stream, so that it cannot be guessed."""
_ALIVE_EVERY_S: Final = 15.0
_ALIVE: Final = b": the stream is open\n\n"

_log = structlog.get_logger("toold.mcp")


class SharedEvents(EventStream):
    """The events of one client, written by all of its requests."""

    def __init__(self, send: Send) -> None:
        super().__init__(send)
        self._lock = asyncio.Lock()
        self.ended = asyncio.Event()
        """Whether the client no longer reads, or the daemon has ended the stream."""

    async def write(self, data: bytes, *, last: bool = False) -> None:
        """Sends events, unless the stream has ended. ``last`` ends it."""
        async with self._lock:
            if not self.ended.is_set() and data:
                await super().write(data)
        if last:
            self.ended.set()

    async def finish(self) -> None:
        """Completes the response."""
        async with self._lock:
            self.ended.set()
            await super().write(b"", last=True)

    async def receive(self) -> Message:
        """Reports the end of the stream as the client's disconnect, to each of its calls."""
        await self.ended.wait()
        return {"type": "http.disconnect"}


class _Client:
    """One open stream, with the data that its client has sent in ``initialize``."""

    def __init__(self, access: Authorization, toolset: str, events: SharedEvents, stream_id: str) -> None:
        self.id = stream_id
        self.access = access
        self.toolset = toolset
        self.events = events
        self.revision: McpRevision = SSE_REVISION
        self.info = ClientInfo()
        self.answers: tuple[QuestionKind, ...] = ()
        self.label: str | None = None
        """Set by ``initialize``."""
        self.tasks: set[asyncio.Task[None]] = set()

    def initialize(self, params: dict[str, Any]) -> str:
        """Stores the client's data from ``initialize``; returns the label."""
        self.revision, self.info = negotiated(params.get("protocolVersion")), client_of(params.get("clientInfo"))
        self.answers = kinds_declared(params.get("capabilities"))
        self.label = make_label(self.info, self.answers)
        return self.label

    def caller(self, request: RpcRequest, size: int, unsent: list[Unsent]) -> McpCaller:
        """The sender of a request."""
        envelope = RequestEnvelope(
            self.revision, progress_token=progress_token(request.params.get("_meta")), answers=self.answers
        )
        return McpCaller(
            self.access,
            self.toolset,
            self.label or "",
            self.info,
            envelope,
            labelled=True,
            size=size,
            receive=self.events.receive,
            stream=self.events,
            unsent=unsent,
        )


class SseServer:
    """The ASGI app of ``/sse`` and ``/messages/``."""

    def __init__(self, mcp: McpServer, node_tokens: NodeTokens) -> None:
        self._mcp = mcp
        self._node_tokens = node_tokens
        self._clients: dict[str, _Client] = {}

    def __repr__(self) -> str:
        return f"<SseServer of {len(self._clients)} streams>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if path.startswith(MESSAGES_PATH):
            self._node_tokens.require_here(path.removeprefix(MESSAGES_PATH))
        client = self._clients.get(path.removeprefix(MESSAGES_PATH)) if path.startswith(MESSAGES_PATH) else None
        if path.startswith(MESSAGES_PATH):
            scope["toolset"] = None if client is None else client.toolset
        admitted = await self._mcp.admit(scope, receive, send)
        whole = COMPLETE in scope.get("extensions", ())
        if isinstance(admitted, RequestRefused):
            await refuse_request(send, admitted, close=whole)
        elif path.startswith(MESSAGES_PATH):
            if client is None or client.access.principal != admitted.access.principal:
                await refuse_request(send, RequestRefused(404, "No such stream is open: open one with GET /sse."))
                return
            async with self._mcp.serving(partial(refuse_request, send)):
                await self._take(client, admitted, send, whole=whole)
        elif scope["method"] != "GET":
            message = "GET /sse opens a stream, whose first event has the address for messages; /mcp takes POST."
            await refuse_request(send, RequestRefused(405, message, (("allow", "GET"),)))
        else:
            stream_id = self._node_tokens.named(token_urlsafe(_ID_BYTES))
            async with self._mcp.serving(partial(refuse_request, send)):
                await self._serve(_Client(admitted.access, admitted.toolset, SharedEvents(send), stream_id), receive)

    def close_unauthorized(self, denial_reason: Callable[[Authorization], str | None]) -> None:
        """Ends the streams whose authorization is no longer valid."""
        for client in self._clients.values():
            if denial_reason(client.access) is not None:
                client.events.ended.set()

    def close(self) -> None:
        """Ends all streams."""
        for client in self._clients.values():
            client.events.ended.set()

    async def _serve(self, client: _Client, receive: Receive) -> None:
        """Serves a stream until its client disconnects."""
        events = client.events
        self._clients[client.id] = client
        watch = asyncio.ensure_future(wait_disconnected(receive))
        watch.add_done_callback(lambda _: events.ended.set())
        try:
            await events.write(f"event: endpoint\ndata: {MESSAGES_PATH}{client.id}\n\n".encode())
            while not events.ended.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(_ALIVE_EVERY_S):
                        await events.ended.wait()
                await events.write(_ALIVE)
        finally:
            del self._clients[client.id]
            events.ended.set()
            watch.cancel()
            await events.finish()

    async def _take(self, client: _Client, admitted: AdmittedMessage, send: Send, *, whole: bool) -> None:
        """Accepts a message. A request is answered on the stream."""
        message, size = await self._mcp.receive(admitted, whole=whole)
        problem: MessageProblem | None = None
        client.access = admitted.access  # the rights of the newest token apply
        match message:
            case RpcRequest() if len(client.tasks) >= MAX_OPEN_REQUESTS:
                busy = f"{MAX_OPEN_REQUESTS} requests of this stream have no answer yet."
                await refuse_request(send, RequestRefused(503, busy, (("retry-after", "1"),)))
                return
            case RpcRequest():
                task = asyncio.create_task(self._answer(client, message, size), name="request of an SSE client")
                client.tasks.add(task)
                task.add_done_callback(client.tasks.discard)
            case RpcNotification():
                if message.method == "notifications/cancelled" and client.label is not None:
                    self._mcp.cancel(message.params.get("requestId"), client.label, client.access.principal.name)
            case RpcReply():
                problem = self._mcp.take_reply(message, client.label, client.access.principal)
            case _:
                problem = MessageProblem(INVALID_REQUEST, "Send one JSON-RPC message per POST.")
        if problem is None:
            await send_json(send, b"", 202)
        else:
            await send_json(send, json_rpc.failure(None, problem), 400)

    async def _answer(self, client: _Client, request: RpcRequest, size: int) -> None:
        unsent: list[Unsent] = []
        if request.method == "initialize":
            bind_session(client.initialize(request.params))
        try:
            if client.label is None and request.method != "ping":
                answer: bytes | MessageProblem | None = MessageProblem(INVALID_REQUEST, "Send initialize first.")
            else:
                answer = await self._mcp.answer(request, client.caller(request, size, unsent))
            if isinstance(answer, MessageProblem):
                answer = json_rpc.failure(request.id, answer)
            if answer is not None:
                await client.events.write(json_rpc.event(answer))
        finally:
            for each in unsent:
                each.close()
        if request.method == "initialize" and client.label is not None:
            with suppress(OverCapacityError):  # then it gets no notifications
                await self._mcp.listen(
                    client.access, client.toolset, client.label, client.events.receive, client.events
                )
