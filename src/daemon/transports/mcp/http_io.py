"""Bodies in and answers out, as ASGI moves them."""

import asyncio
from collections.abc import Iterable
from typing import Final

from starlette.types import Receive, Send

CHUNK_TIMEOUT_S: Final = 20.0
"""How long the next piece of a body may take to come."""

Headers = Iterable[tuple[bytes, bytes]]

_JSON: Final = (b"content-type", b"application/json")
_STREAM: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),  # nginx passes events on as they come
)


class BodyTooLargeError(Exception):
    """The body has more bytes than are taken."""


class HungUpError(Exception):
    """The client left before its request was complete."""


async def read_body(receive: Receive, limit: int, *, whole: bool = False) -> bytes:
    """The request's body; the ``whole`` of it is there already, or it comes piece by piece.

    Raises:
        BodyTooLargeError: it is longer than ``limit`` bytes.
        HungUpError: the client left.
        TimeoutError: the next piece did not come in time.
    """
    parts, size, more = [], 0, True
    while more:
        if whole:  # a time-out costs as much as all else here
            message = await receive()
        else:
            async with asyncio.timeout(CHUNK_TIMEOUT_S):
                message = await receive()
        if message["type"] != "http.request":
            raise HungUpError
        part: bytes = message.get("body", b"")
        parts.append(part)
        size += len(part)
        if size > limit:
            raise BodyTooLargeError
        more = message.get("more_body", False)
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def hung_up(receive: Receive) -> None:
    """Return once the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def send_json(send: Send, body: bytes, status: int = 200, headers: Headers = ()) -> None:
    """One JSON answer; an empty one has no type."""
    shape = [_JSON] if body else []
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*shape, length, *headers]})
    await send({"type": "http.response.body", "body": body})


class EventStream:
    """An answer that is sent in events. Nothing is sent before the first."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    async def write(self, data: bytes, *, last: bool = False) -> None:
        """Send events; after the last the answer is complete."""
        if not self.begun:
            self.begun = True
            await self._send({"type": "http.response.start", "status": 200, "headers": list(_STREAM)})
        await self._send({"type": "http.response.body", "body": data, "more_body": not last})
