"""Submits the calls of ``/v1`` to the router, and sends their answers."""

import asyncio
import time
from collections.abc import Callable, Mapping
from secrets import token_hex
from typing import Any, Final

import msgspec
from msgspec.structs import replace
from starlette.types import Receive, Send

from ....protocol.arguments_digest import arguments_digest
from ....protocol.authorization import Authorization
from ....protocol.json_pieces import LONG_BYTES
from ....protocol.openai.openai_chat_response import AnswerIdentity, error_event
from ....protocol.openai.openai_error import OpenAIProblem, problem_of
from ....protocol.session_registry import hash_key
from ....protocol.tool_call import ClientInfo, ToolCall, ToolResult
from ....tools import is_long
from ...dispatch import AbsentResultPort, Router, RunningCall, Session, conflict_of, prepared
from ...observability.logging_setup import bind_session
from ...off_loop import off_loop
from ..http_io import EventStream, send_json, wait_disconnected
from ..keyed_sessions import KeyedSessions
from ..mcp.mcp_caller import make_label
from .openai_exchange import AnswerForm, OpenAIExchange, PieceForm

_CALL: Final = "1"
"""The request id of a call without a key, which is the only call of its session."""


class OpenAIPost(msgspec.Struct, frozen=True):
    """One admitted POST."""

    access: Authorization
    toolset: str
    client: ClientInfo
    key: str | None
    """The ``Idempotency-Key``."""
    receive: Receive
    send: Send


class AnswerForms(msgspec.Struct, frozen=True):
    """How a request's answer is encoded."""

    end: Callable[[Callable[[], AnswerIdentity]], AnswerForm]
    piece: Callable[[Callable[[], AnswerIdentity]], PieceForm] | None = None
    """The pieces of a stream; None: the answer is sent whole."""


class OpenAICall(msgspec.Struct, frozen=True):
    """The tool call of a request."""

    tool: str
    arguments: Mapping[str, Any]
    model: str
    """The model's name that the client sent."""
    forms: AnswerForms


class OpenAICalls:
    """The calls of all clients."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._sessions = KeyedSessions(router, transport="openai", absent_port=AbsentResultPort())

    def __repr__(self) -> str:
        return f"<OpenAICalls {self._router!r}>"

    async def run(self, post: OpenAIPost, requested: OpenAICall, size: int) -> None:
        """Runs a call of ``size`` bytes and sends its answer, or the error.

        Without a key, the call ends if the client disconnects. With a key, it continues, and the client gets the answer
        by sending the key again.
        """
        forms = requested.forms
        request_id = post.key or _CALL
        call = ToolCall(
            request_id, requested.tool, dict(requested.arguments), None, size, None if post.key else "cancel"
        )
        if post.key is not None and size > LONG_BYTES and is_long(call.arguments):
            call = replace(call, arguments_hash=await off_loop(arguments_digest, call.arguments))
        session = await self._session(post, streams=forms.piece is not None)
        conflict = conflict_of(session, call, now := time.monotonic())
        if conflict is not None:  # the client that waits for the other call is not affected
            self._router.refuse(session, call, conflict, now)
            problem = problem_of(conflict.to_tool_error())
            await send_json(post.send, problem.encode(), problem.status, problem.response_headers())
            return
        identity = _Identity(post.key, requested.model)
        exchange = OpenAIExchange(
            forms.end(identity.current), (lambda *_: b"") if forms.piece is None else forms.piece(identity.current)
        )
        exchange.late = self._router.running_call(session, request_id) is not None
        superseded, _ = self._router.connect(session, exchange)
        if isinstance(superseded, OpenAIExchange):
            superseded.supersede()
        try:
            running = self._router.submit(session, await prepared(self._router.catalog, session, call), exchange)
            if isinstance(running, RunningCall):
                identity.of_call(running.id)
            elif isinstance(running, ToolResult):
                exchange.settle(running)
            stream = EventStream(post.send, identity.headers) if forms.piece is not None else None
            await self._answer(exchange, post, stream, identity)
        finally:
            self._router.disconnect(session, exchange)
            exchange.close()

    async def _session(self, post: OpenAIPost, *, streams: bool) -> Session:
        """The session of the key, if the request has one; otherwise a new one."""
        label = make_label(post.client)
        if post.key is None:
            session = self._sessions.open(post.access, post.toolset, post.client, label=label, streams=streams)
        else:
            session = await self._sessions.find_or_open(
                post.access, post.toolset, post.client, key=post.key, label=label, streams=streams
            )
        bind_session(session.label)
        return session

    async def _answer(
        self, exchange: OpenAIExchange, post: OpenAIPost, stream: EventStream | None, identity: "_Identity"
    ) -> None:
        """Sends the parts of the answer as they arrive, until it is complete or the client has disconnected."""
        watch = asyncio.ensure_future(wait_disconnected(post.receive))
        watch.add_done_callback(exchange.set_disconnected)
        try:
            while True:
                events = exchange.events()
                if events and stream is not None and (stream.started or exchange.problem is None):
                    await stream.write(events)
                    continue
                if exchange.answer is not None:
                    break
                if exchange.disconnected:
                    return
                await exchange.changed.wait()
                exchange.changed.clear()
            await _send_last(exchange.answer, exchange.problem, post.send, stream, identity)
        finally:
            watch.cancel()


async def _send_last(
    answer: bytes, problem: OpenAIProblem | None, send: Send, stream: EventStream | None, identity: "_Identity"
) -> None:
    """Sends the end of an answer. Once a stream has begun, an error is an event, because the status has already been
    sent."""
    if problem is not None:
        if stream is not None and stream.started:
            await stream.write(error_event(answer), last=True)
        else:
            await send_json(send, answer, problem.status, [*identity.headers, *problem.response_headers()])
    elif stream is not None:
        await stream.write(answer, last=True)
    else:
        await send_json(send, answer, 200, identity.headers)


class _Identity:
    """The id and time of an answer, from its call or its key, so that they stay the same if it is sent again."""

    def __init__(self, key: str | None, model: str) -> None:
        self._name = token_hex(12) if key is None else hash_key(key).hex()[:24]
        self._model = model
        self._created = int(time.time())
        self.headers: list[tuple[bytes, bytes]] = []
        """The call's id, as it is in the audit."""

    def of_call(self, call_id: str) -> None:
        self.headers.append((b"x-request-id", call_id.encode()))

    def current(self) -> AnswerIdentity:
        return AnswerIdentity(f"chatcmpl-{self._name}", self._created, self._model)
