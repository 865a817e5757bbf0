"""Reads request bodies and sends responses over ASGI."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from starlette.types import Receive, Scope, Send

from ...protocol import json_rpc
from ...protocol.json_rpc import MessageProblem
from ...serving import SLOW_READER_BYTES
from .body_turn import BodyTurn
from .large_frames import LARGE_BYTES
from .request_guard import RequestRefused

BODY_TIMEOUT_S: Final = 20.0
"""How long a body may take to arrive, in addition to the time that its bytes need at the slowest rate."""
SLOWEST_BODY_RATE: Final = 16 * 1024
"""In bytes per second: 128 kbit/s, the rate of the slowest mobile networks."""

Headers = Iterable[tuple[bytes, bytes]]

JSON_TYPE: Final = "application/json"
_STREAM: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),  # nginx forwards events without buffering
)


class BodyTooLargeError(Exception):
    """The body exceeds the limit."""


class ClientDisconnectedError(Exception):
    """The client disconnected before its request was complete."""


def read_headers(scope: Scope, names: Mapping[bytes, str]) -> dict[str, str]:
    """Returns the headers in ``names``, under those names. Repeated headers are joined by commas, as HTTP specifies, so
    a repeated header is not mistaken for a single valid value.
    """
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name = names.get(raw_name)
        if name is not None:
            value = raw_value.decode("latin-1").strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


async def read_body(receive: Receive, limit: int, *, whole: bool = False, turn: BodyTurn | None = None) -> bytes:
    """Reads the request's body. ``whole``: the whole body has already arrived. A large body waits for its ``turn``.

    Raises:
        BodyTooLargeError: it is longer than ``limit`` bytes.
        ClientDisconnectedError: the client disconnected.
        TimeoutError: it did not arrive in time.
        NoTurnError: too many large bodies are being received.
    """
    parts, size, more = [], 0, True
    began = 0.0 if whole else asyncio.get_running_loop().time()
    while more:
        if whole:  # a timeout would double the cost
            message = await receive()
        else:
            if turn is not None and size > LARGE_BYTES and turn.reading is None:
                waited_from = asyncio.get_running_loop().time()
                await turn.take()
                began += asyncio.get_running_loop().time() - waited_from
            async with asyncio.timeout_at(began + BODY_TIMEOUT_S + size / SLOWEST_BODY_RATE) as reading:
                if turn is not None and size > LARGE_BYTES:
                    turn.reading = reading
                message = await receive()
        if message["type"] != "http.request":
            raise ClientDisconnectedError
        part: bytes = message.get("body", b"")
        parts.append(part)
        size += len(part)
        if size > limit:
            raise BodyTooLargeError
        more = message.get("more_body", False)
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def wait_disconnected(receive: Receive) -> None:
    """Returns once the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def send_json(
    send: Send, body: bytes, status: int = 200, headers: Headers = (), *, media_type: str = JSON_TYPE
) -> None:
    """Sends one JSON response; an empty response has no content type. Returns once the client has read most of it."""
    shape = [(b"content-type", media_type.encode())] if body else []
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*shape, length, *headers]})
    await _finish(send, body)


async def send_rpc_refusal(send: Send, refused: RequestRefused, problem: MessageProblem, *, close: bool) -> None:
    """Answers a refused request of JSON-RPC. Without ``close``, the connection stays open while the rest of the request
    arrives, so that the client sees the answer.
    """
    headers = [(name.encode(), value.encode()) for name, value in refused.headers]
    if close:
        headers.append((b"connection", b"close"))
    await send_json(send, json_rpc.failure(None, problem), refused.status, headers)


async def _finish(send: Send, body: bytes) -> None:
    """Sends the last part of a response. uvicorn waits for a slow reader at the beginning of the next send."""
    if len(body) > SLOW_READER_BYTES:
        await send({"type": "http.response.body", "body": body, "more_body": True})
        body = b""
    await send({"type": "http.response.body", "body": body, "more_body": False})


class EventStream:
    """An SSE response. Nothing is sent before the first event."""

    def __init__(self, send: Send, headers: Headers = ()) -> None:
        self._send = send
        self._headers = headers
        self.started = False

    async def write(self, data: bytes, *, last: bool = False) -> None:
        """Sends events; ``last`` completes the response."""
        if not self.started:
            self.started = True
            await self._send({"type": "http.response.start", "status": 200, "headers": [*_STREAM, *self._headers]})
        if last:
            await _finish(self._send, data)
        else:
            await self._send({"type": "http.response.body", "body": data, "more_body": True})
