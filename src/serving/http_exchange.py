"""One HTTP request and its response over ASGI, in place of uvicorn's ``RequestResponseCycle``.

It does less work per request: the lines of a head are encoded once and kept, a body is joined once, and nothing waits
for a body that has arrived.
"""

import asyncio
import http
import logging
from collections.abc import Callable, Iterable, MutableMapping
from functools import lru_cache
from typing import Any, Final

from starlette.types import ASGIApp, Message
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import HEADER_RE, HEADER_VALUE_RE
from uvicorn.server import ServerState

_KEPT_BYTES: Final = 256
"""Longer lines are not kept."""
_JOINED_BYTES: Final = 64 * 1024
"""A longer body is not copied to join its head."""
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_CLOSE: Final = b"connection: close\r\n"
_CHUNKED: Final = b"transfer-encoding: chunked\r\n"
_WITHOUT_BODY: Final = (204, 304)
_FAILED: Final = (
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", b"21"),
    (b"connection", b"close"),
)
_DISCONNECTED: Final = "http.disconnect"

_log = logging.getLogger("uvicorn.error")


class ResponseHeads:
    """Encodes the heads of the responses of one connection."""

    __slots__ = ("_default", "_starts", "_state")

    def __init__(self, state: ServerState) -> None:
        self._state = state
        # The headers of every response, a new list each second, and the beginning of a head by status.
        self._default: list[tuple[bytes, bytes]] = []
        self._starts: dict[int, bytes] = {}

    def start(self, status: int) -> bytes:
        """The status line and the headers of every response."""
        default = self._state.default_headers
        if default is not self._default:
            self._default, self._starts = default, {}
        start = self._starts.get(status)
        if start is None:
            start = self._starts[status] = _status_line(status) + b"".join(header_line(*header) for header in default)
        return start


class HttpExchange:
    """Implements ``receive`` and ``send`` of ASGI. Like uvicorn's class, raises a ``RuntimeError`` if the app violates
    ASGI.
    """

    __slots__ = (
        *(
            "_awaits_continue",
            "_body",
            "_body_bytes",
            "_changed",
            "_chunked",
            "_flow",
            "_head",
            "_heads",
            "_left",
            "_news",
        ),
        *("_on_response", "_transport", "disconnected", "keep_alive", "more_body", "response_complete"),
        *("response_started", "scope"),
    )

    def __init__(
        self,
        scope: MutableMapping[str, Any],
        transport: asyncio.Transport,
        flow: FlowControl,
        heads: ResponseHeads,
        on_response: Callable[[], None],
        *,
        keep_alive: bool,
        expects_continue: bool,
    ) -> None:
        self.scope = scope
        self._transport = transport
        self._flow = flow
        self._heads = heads
        self._on_response = on_response
        self.keep_alive = keep_alive
        """Cleared by uvicorn when the server closes."""
        self._awaits_continue = expects_continue
        self.disconnected = False
        # The part of the body that has arrived and that the app has not received.
        self._body: list[bytes] = []
        self._body_bytes = 0
        self.more_body = True
        # A part of the request, or its end, has arrived and the app has not received it.
        self._news = False
        # Set while the app waits.
        self._changed: asyncio.Event | None = None
        self.response_started = False
        self.response_complete = False
        # The head, until it is sent with the first piece of the body.
        self._head = b""
        self._chunked = False
        # The bytes of the response's body that are still to be sent, if it is not chunked.
        self._left = 0

    # --- the connection ----------------------------------------------------------------------------------------------

    def add_body(self, piece: bytes) -> None:
        """A piece of the request's body has arrived."""
        self._body.append(piece)
        self._body_bytes += len(piece)
        if self._body_bytes > HIGH_WATER_LIMIT:
            self._flow.pause_reading()
        self._notify()

    def end_body(self) -> None:
        """All of the request has arrived."""
        self.more_body = False
        self._notify()

    def disconnect(self) -> None:
        """The connection is lost."""
        if not self.response_complete:
            self.disconnected = True
        self._wake()

    def _notify(self) -> None:
        self._news = True
        self._wake()

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()

    # --- the app -----------------------------------------------------------------------------------------------------

    async def run(self, app: ASGIApp) -> None:
        """Lets the app answer. If the app fails, the response has the status 500 or the connection is closed."""
        try:
            await app(self.scope, self.receive, self.send)
        except BaseException as error:  # noqa: BLE001 - as uvicorn: an app may raise anything
            _log.error("Exception in ASGI application\n", exc_info=error)
            await self._fail()
        else:
            if not self.response_complete and not self.disconnected:
                what = "completing" if self.response_started else "starting"
                _log.error("ASGI callable returned without %s response.", what)
                await self._fail()
        finally:
            self._on_response = _nothing

    async def receive(self) -> Message:
        if self._awaits_continue and not self._transport.is_closing():
            self._awaits_continue = False
            self._transport.write(_CONTINUE)
        while not (self._news or self.disconnected or self.response_complete):
            self._flow.resume_reading()
            self._changed = self._changed or asyncio.Event()
            self._changed.clear()
            await self._changed.wait()
        if self.disconnected or self.response_complete:
            return {"type": _DISCONNECTED}
        pieces, self._body = self._body, []
        self._body_bytes, self._news = 0, False
        if self._flow.read_paused:
            self._flow.resume_reading()
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    async def send(self, message: Message) -> None:
        if self._flow.write_paused and not self.disconnected:
            await self._flow.drain()
        if self.disconnected:
            return
        kind = message["type"]
        if not self.response_started and kind == "http.response.start":
            self._start(message["status"], message.get("headers", ()))
        elif self.response_started and not self.response_complete and kind == "http.response.body":
            self._write(message.get("body", b""), more=message.get("more_body", False))
        else:
            raise RuntimeError(f"Unexpected ASGI message '{kind}' sent.")

    def _start(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        head = [self._heads.start(status)]
        length: int | None = None
        chunked = says_close = False
        for name, value in headers:
            line = header_line(name, value)
            head.append(line)
            if line.startswith(b"content-length:"):
                length = int(value)
            elif line.startswith(b"transfer-encoding:"):
                chunked = True
            elif line.startswith(b"connection:"):
                says_close = b"close" in value.lower()
        if length is None and not chunked and self.scope["method"] != "HEAD" and status not in _WITHOUT_BODY:
            chunked = True
            head.append(_CHUNKED)
        if says_close:
            self.keep_alive = False
        elif not self.keep_alive:
            head.append(_CLOSE)
        head.append(b"\r\n")
        self.response_started, self._awaits_continue = True, False
        self._chunked, self._left = chunked, 0 if chunked or length is None else length
        self._head = b"".join(head)
        if chunked:  # the first piece of the body may come much later
            asyncio.get_running_loop().call_soon(self._send_head)

    def _send_head(self) -> None:
        if self._head and not self._transport.is_closing():
            self._transport.write(self._head)
        self._head = b""

    def _write(self, body: bytes, *, more: bool) -> None:
        if self.scope["method"] == "HEAD":
            self._left, body = 0, b""
        elif self._chunked:
            last = b"" if more else b"0\r\n\r\n"
            body = b"%x\r\n%b\r\n%b" % (len(body), body, last) if body else last
        else:
            self._left -= len(body)
        if self._left < 0:
            raise RuntimeError("Response content longer than Content-Length")
        if self._left and not more:
            raise RuntimeError("Response content shorter than Content-Length")
        head, self._head = self._head, b""
        if head and len(body) > _JOINED_BYTES:
            self._transport.writelines((head, body))
        elif head or body:
            self._transport.write(head + body)
        if more:
            return
        self.response_complete = True
        self._wake()
        if not self.keep_alive:
            self._transport.close()
        self._on_response()

    async def _fail(self) -> None:
        if self.response_started and not self._head:
            self._transport.close()
        else:
            self.response_started = False
            await self.send({"type": "http.response.start", "status": 500, "headers": _FAILED})
            await self.send({"type": "http.response.body", "body": b"Internal Server Error"})


def header_line(name: bytes, value: bytes) -> bytes:
    """Returns the line of a header.

    Raises:
        RuntimeError: the header has a character that is not allowed, such as a line break.
    """
    if len(value) > _KEPT_BYTES:
        return _header_line.__wrapped__(name, value)
    return _header_line(name, value)


@lru_cache(maxsize=1024)
def _header_line(name: bytes, value: bytes) -> bytes:
    if HEADER_RE.search(name):
        raise RuntimeError("Invalid HTTP header name.")
    if HEADER_VALUE_RE.search(value):
        raise RuntimeError("Invalid HTTP header value.")
    return b"%b: %b\r\n" % (name.lower(), value)


def _status_line(status: int) -> bytes:
    try:
        phrase = http.HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {status} {phrase}\r\n".encode()


def _nothing() -> None:
    pass
