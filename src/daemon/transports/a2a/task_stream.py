"""Streams of a task's events, over SSE. The id of each event is its number, after which a later stream can begin."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, Final, TypeVar

import msgspec
import structlog
from starlette.types import Receive, Send

from ....protocol.error_codes import CallError
from ....protocol.json_pieces import LONG_BYTES
from ...observability.logging_setup import error_text
from ...off_loop import off_loop
from ..http_io import EventStream, wait_disconnected
from .task_view import encoded_bytes

_log = structlog.get_logger("toold.a2a")

_ALIVE: Final = b": the task is still working\n"
"""An SSE comment, which clients ignore, so that proxies do not close the connection. No blank line follows: once an
event has had an id, httpx-sse, which a2a-sdk uses, treats a blank line as the end of another event.
"""

T = TypeVar("T")

TaskEvents = AsyncGenerator[tuple[int, dict[str, msgspec.Raw]] | None]
"""The events of a task, with encoded content, and their numbers; None while it is still working."""


async def send_events(
    events: TaskEvents, encode: Callable[[dict[str, Any]], bytes], receive: Receive, send: Send
) -> None:
    """Sends events until there are no more, or the client has disconnected. ``encode`` makes the data of an event.

    Raises:
        CallError, A2AError: the first event could not be read; nothing was sent.
    """
    stream = EventStream(send)
    sending = asyncio.ensure_future(_send(events, encode, stream))
    watch = asyncio.ensure_future(wait_disconnected(receive))
    try:
        await asyncio.wait((sending, watch), return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()
    finally:
        watch.cancel()
        sending.cancel()


async def send_event(data: bytes, send: Send) -> None:
    """Sends a stream of one event, which has no number."""
    stream = EventStream(send)
    await stream.write(b"data: %s\n\n" % data, last=True)


async def answer_unless_disconnected(answering: Coroutine[Any, Any, T], receive: Receive) -> T | None:
    """The answer; None if the client disconnects first. A task that the request has begun continues.

    Raises:
        Exception: as raised by ``answering``.
    """
    answer = asyncio.ensure_future(answering)
    watch = asyncio.ensure_future(wait_disconnected(receive))
    try:
        await asyncio.wait((answer, watch), return_when=asyncio.FIRST_COMPLETED)
        return answer.result() if answer.done() else None
    finally:
        watch.cancel()
        answer.cancel()


async def _send(events: TaskEvents, encode: Callable[[dict[str, Any]], bytes], stream: EventStream) -> None:
    try:
        async with aclosing(events) as open_events:
            async for event in open_events:
                if event is None:
                    await stream.write(_ALIVE)
                else:
                    number, body = event
                    long = encoded_bytes(body) > LONG_BYTES
                    data = await off_loop(encode, body) if long else encode(body)
                    await stream.write(b"id: %d\ndata: %s\n\n" % (number, data))
    except CallError as error:
        if not stream.started:
            raise
        _log.warning("stream of a task ended early", reason=error_text(error))  # its client subscribes again
    await stream.write(b"", last=True)
