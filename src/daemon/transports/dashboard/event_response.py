"""A response of server-sent events, which ends when its browser disconnects."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..http_io import EventStream, wait_disconnected


class TooManyPagesError(Exception):
    """No more live pages can be served."""


class EventResponse(Response):
    """Sends the events that a generator yields, and closes the generator.

    The status is 503 if it raises ``TooManyPagesError`` before its first event.
    """

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        super().__init__()
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        stream = EventStream(send)

        async def send_events() -> None:
            async with aclosing(self._events) as source:
                async for events in source:
                    await stream.write(events)

        sending = asyncio.create_task(send_events())
        leaving = asyncio.create_task(wait_disconnected(receive))
        try:
            await asyncio.wait([sending, leaving], return_when=asyncio.FIRST_COMPLETED)
            left = leaving.done()
        finally:
            for task in (sending, leaving):
                task.cancel()
            results = await asyncio.gather(sending, leaving, return_exceptions=True)
        if isinstance(results[0], TooManyPagesError):
            refused = Response("Too many live pages are open.", 503, {"retry-after": "5"})
            await refused(scope, receive, send)
        elif isinstance(results[0], Exception):
            raise results[0]
        elif not left:
            await stream.write(b"", last=True)


def server_sent_event(name: str, data: bytes) -> bytes:
    """One event; its data may have several lines."""
    lines = b"".join(b"data: " + line + b"\n" for line in data.split(b"\n"))
    return b"event: " + name.encode() + b"\n" + lines + b"\n"
