"""Submits the calls of ``POST /tools/{name}`` to the router, and sends their answers."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace
from starlette.types import Receive, Send

from ....protocol.arguments_digest import arguments_digest
from ....protocol.authorization import Authorization
from ....protocol.json_pieces import LONG_BYTES
from ....protocol.rest.rest_answer import METADATA_HEADER, RestAnswer, error_answer
from ....protocol.tool_call import ClientInfo, ToolCall, ToolResult
from ....tools import is_long
from ...dispatch import AbsentResultPort, Router, RunningCall, Session, conflict_of, prepared
from ...observability.logging_setup import bind_session
from ...off_loop import off_loop
from ..http_io import EventStream, send_json, wait_disconnected
from ..keyed_sessions import KeyedSessions
from ..mcp.mcp_caller import make_label
from .rest_exchange import RestExchange

_CALL: Final = "1"
"""The request id of a call without a key; it is the only call of its session."""


class RestPost(msgspec.Struct, frozen=True):
    """One admitted POST."""

    access: Authorization
    toolset: str
    tool: str
    client: ClientInfo
    key: str | None
    """The ``Idempotency-Key``."""
    timeout_ms: float | None
    traceparent: str | None
    streams: bool
    """The client asked for an event stream."""
    receive: Receive
    send: Send


class RestCalls:
    """The calls of all clients."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._sessions = KeyedSessions(router, transport="rest", absent_port=AbsentResultPort())

    def __repr__(self) -> str:
        return f"<RestCalls {self._router!r}>"

    async def run(self, post: RestPost, arguments: Mapping[str, Any], size: int) -> None:
        """Runs a call of ``size`` bytes and sends its answer, or the error.

        Without a key the call ends if the client disconnects. With a key it continues, and the client gets its answer
        by sending the key again.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        request_id = post.key or _CALL
        call = ToolCall(
            request_id,
            post.tool,
            dict(arguments),
            post.timeout_ms,
            size,
            None if post.key else "cancel",
            traceparent=post.traceparent,
        )
        if post.key is not None and size > LONG_BYTES and is_long(call.arguments):
            call = replace(call, arguments_hash=await off_loop(arguments_digest, call.arguments))
        session = await self._session(post)
        conflict = conflict_of(session, call, now := time.monotonic())
        if conflict is not None:  # the client that waits for the other call keeps waiting
            self._router.refuse(session, call, conflict, now)
            await send_answer(post.send, error_answer(conflict.to_tool_error()))
            return
        exchange = RestExchange(streams=post.streams)
        exchange.late = self._router.running_call(session, request_id) is not None
        superseded, _ = self._router.connect(session, exchange)
        if isinstance(superseded, RestExchange):
            superseded.supersede()
        headers: tuple[tuple[str, str], ...] = ()
        try:
            running = self._router.submit(session, await prepared(self._router.catalog, session, call), exchange)
            if isinstance(running, RunningCall):
                headers = (("x-request-id", running.id),)
            elif isinstance(running, ToolResult):
                exchange.settle(running)
            await _answer(exchange, post, headers)
        finally:
            self._router.disconnect(session, exchange)
            exchange.close()

    async def _session(self, post: RestPost) -> Session:
        """The session of the request's key, or a new session if it has no key."""
        label = make_label(post.client)
        if post.key is None:
            session = self._sessions.open(post.access, post.toolset, post.client, label=label, streams=post.streams)
        else:
            session = await self._sessions.find_or_open(
                post.access, post.toolset, post.client, key=post.key, label=label, streams=post.streams
            )
        bind_session(session.label)
        return session


async def send_answer(send: Send, answer: RestAnswer, headers: tuple[tuple[str, str], ...] = ()) -> None:
    """Sends an answer whole."""
    sent = [(name.encode(), value.encode("latin-1", "replace")) for name, value in (*headers, *answer.headers)]
    metadata = answer.header_metadata
    if metadata is not None:
        sent.append((METADATA_HEADER.encode(), metadata.encode()))
    await send_json(send, answer.body, answer.status, sent)


async def _answer(exchange: RestExchange, post: RestPost, headers: tuple[tuple[str, str], ...]) -> None:
    """Sends the parts of the answer as they arrive, until it is complete or the client has disconnected.

    Once a stream has begun, an error is sent as an event, because the status has been sent.
    """
    encoded = [(name.encode(), value.encode()) for name, value in headers]
    stream = EventStream(post.send, encoded) if post.streams else None
    # Most calls of local tools are done in the next loop iteration: no need to watch their clients.
    await asyncio.sleep(0)
    if exchange.answer is None:
        await _follow(exchange, post, stream)
    answer = exchange.answer
    if answer is None:
        return
    if stream is not None and (stream.started or answer.status == 200):
        await stream.write(exchange.events() + answer.event(), last=True)
    else:
        await send_answer(post.send, answer, headers)


async def _follow(exchange: RestExchange, post: RestPost, stream: EventStream | None) -> None:
    """Waits for the answer, and sends the events before it."""
    watch = asyncio.ensure_future(wait_disconnected(post.receive))
    watch.add_done_callback(exchange.set_disconnected)
    try:
        while not exchange.ended:
            await exchange.changed.wait()
            exchange.changed.clear()
            events = b"" if stream is None or exchange.ended else exchange.events()
            if stream is not None and events:
                await stream.write(events)
    finally:
        watch.cancel()
