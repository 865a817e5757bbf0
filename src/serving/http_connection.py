"""One HTTP/1.1 connection: uvicorn's protocol on httptools, with the limits that it lacks (decision 46).

The httptools parser has no limits on sizes or times, does not require Host, and treats an upgrade request as the end of
HTTP, which would lose its body. Java's client requests an upgrade to HTTP/2 with its first request. So this module
limits
what a client may send before it has a valid request, and passes a connection that requests an upgrade to h11, which
ignores the upgrade. uvicorn limits neither the number of pipelined requests nor how long an answer waits for its
reader; this module does. Each request is an ``HttpExchange``.
"""

import asyncio
from typing import Any, Final, cast
from urllib.parse import unquote

from httptools import HttpParserError, HttpParserUpgrade
from starlette.types import ASGIApp
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .connection_slots import ConnectionSlots
from .http_exchange import HttpExchange, ResponseHeads
from .request_head import RequestHead, parse_target

MAX_HEAD_BYTES: Final = 16 * 1024
"""The limit of an incomplete head, as in h11, of trailers and of chunk extensions. A head that arrives in one piece may
be twice as long."""
_MAX_PARSED_BYTES: Final = 16 * 1024
"""The parser gets this many bytes at once, or the rest of a body. All requests in them are started, at most some
hundreds; the rest waits until those are answered."""
HEAD_TIMEOUT_S: Final = 20.0
"""The time in which a request's head must arrive; on a new connection, the first head."""

STALLED_S: Final = 60.0
"""A reader that is behind (``SLOW_READER_BYTES``) and reads nothing for this long is disconnected."""

COMPLETE: Final = "toold.complete"
"""An ASGI scope extension: the complete request has arrived, so reading its body never waits."""
_EXTENSIONS: Final[dict[str, dict[object, object]]] = {COMPLETE: {}}
_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}

PEER: Final = "toold.peer"
"""The key of the state of an ASGI scope with the request's ``HttpPeer``."""

SKIPPED_S: Final = 5.0
"""The time in which the rest of a request's body must arrive after the answer was sent. A client that is still sending
would not see the answer if the connection were closed at once."""


class HttpPeer:
    """The peer of one connection, and its place among the others."""

    __slots__ = ("_slots", "_transport")

    def __init__(self, slots: "ConnectionSlots[HttpPeer]", transport: asyncio.Transport) -> None:
        self._slots = slots
        self._transport = transport

    def enter(self) -> None:
        """Takes a place, and closes the connection that it displaces."""
        address = self._transport.get_extra_info("peername")
        displaced = self._slots.enter(self, address[0] if isinstance(address, tuple) else "")
        if displaced is not None:
            displaced.abort()

    def authenticate(self) -> bool:
        """Takes a place among the authenticated connections. Returns False if all are taken."""
        return self._slots.authenticate(self)

    def leave(self) -> None:
        self._slots.leave(self)

    def abort(self) -> None:
        self._transport.abort()


class _Flow(FlowControl):
    """Flow control that keeps reading paused while received data waits to be parsed."""

    waiting = b""

    def resume_reading(self) -> None:
        if not self.waiting:
            super().resume_reading()


class _ReaderTimeout:
    """Disconnects readers that read nothing, on both kinds of connection."""

    transport: asyncio.Transport
    flow: FlowControl
    loop: asyncio.AbstractEventLoop
    _stalled: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        self.flow.pause_writing()
        self._watch_reader(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        self._unwatch_reader()

    def _watch_reader(self, unsent: int) -> None:
        self._unwatch_reader()
        self._stalled = self.loop.call_later(STALLED_S, self._check_reader, unsent)

    def _check_reader(self, before: int) -> None:
        unsent = self.transport.get_write_buffer_size()
        if unsent < before:
            self._watch_reader(unsent)
        else:
            self.transport.abort()

    def _unwatch_reader(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


class _H11Connection(_ReaderTimeout, H11Protocol):
    """A connection whose peer requested an upgrade. It ignores the upgrade, without a warning per request."""

    _head: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # h11 limits the size of a head, but not its time: uvicorn's timeout ends with the first byte.
        answering = self.cycle is not None and not self.cycle.response_complete  # type: ignore[redundant-expr]
        if answering or not self.conn.trailing_data[0]:
            self._cancel_head_timeout()
        elif self._head is None:
            self._head = self.loop.call_later(HEAD_TIMEOUT_S, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_head_timeout()
        self._unwatch_reader()
        self._unset_keepalive_if_required()
        self.app_state[PEER].leave()
        super().connection_lost(exc)

    def _cancel_head_timeout(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _unsupported_upgrade_warning(self) -> None:
        pass


class HttpConnection(_ReaderTimeout, HttpToolsProtocol):
    """Implements ``asyncio.Protocol``; each instance serves one connection."""

    flow: _Flow
    # Received bytes since the last complete head or piece of body; usually part of a head.
    _unread = 0
    _in_body = False
    # The missing bytes of the body, if the request has a Content-Length.
    _body_left = 0
    # The latest request, and the request that is being answered; they differ while pipelined requests wait.
    _latest: HttpExchange | None = None
    _answered: HttpExchange | None = None
    # Further data is ignored.
    _ended = False
    # The rest of an answered request's body is being skipped.
    _skipping = False
    # When an inactive connection is closed. The timer may fire earlier, since it is not reset for each request.
    _closes_at: float | None = None
    _timer: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, slots: ConnectionSlots[HttpPeer], direct_app: ASGIApp, **options: Any) -> None:
        """``direct_app`` is uvicorn's app without the middleware for proxy headers."""
        super().__init__(*args, **options)
        self._slots = slots
        self._direct_app = direct_app
        self._heads = ResponseHeads(self.server_state)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's streams do not inherit asyncio.Transport.
        super().connection_made(cast("asyncio.Transport", transport))
        self.flow = _Flow(self.transport)
        self._expect_head()
        peer = HttpPeer(self._slots, self.transport)
        self.app_state = {**self.app_state, PEER: peer}  # the state of every request's scope
        peer.enter()

    def connection_lost(self, exc: Exception | None) -> None:
        self.app_state[PEER].leave()
        self._set_timeout(None)
        if self._timer is not None:
            self._timer.cancel()
        self._unwatch_reader()
        super().connection_lost(exc)
        for exchange in (self._answered, self._latest):
            if exchange is not None:
                exchange.disconnect()

    def data_received(self, data: bytes) -> None:
        self._read(self.flow.waiting + data if self.flow.waiting else data)

    def _read(self, data: bytes) -> None:
        """Parses until a request has to wait for its turn; the remaining data waits too."""
        at = 0
        while at < len(data) and not self.pipeline and not self._ended:
            end = at + max(_MAX_PARSED_BYTES, self._body_left)
            self._parse(data, at, end)
            at = end
        self.flow.waiting = b"" if self._ended else data[at:]
        if self.flow.waiting:
            self.flow.pause_reading()

    def _parse(self, all_: bytes, at: int, end: int) -> None:
        data = all_[at:end]
        begins = not self._unread
        self._unread += len(data)
        if self._in_body and not self._skipping and not self._is_answering:
            self._skipping = True
            self._set_timeout(SKIPPED_S)
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self._ended = True
            self._switch_to_h11(all_[at + upgrade.args[0] :])
        except HttpParserError:
            self._refuse("Invalid HTTP request received.")
        else:
            if self._unread > MAX_HEAD_BYTES:
                self._refuse(f"The request's head exceeds {MAX_HEAD_BYTES} bytes.")
            elif begins and self._unread and not self._in_body and not self._is_answering:
                self._expect_head()

    @property
    def _is_answering(self) -> bool:
        return self._latest is not None and not self._latest.response_complete

    def _start(self, exchange: HttpExchange, app: ASGIApp) -> None:
        self._answered = exchange
        task = self.loop.create_task(exchange.run(app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def on_response_complete(self) -> None:
        """Starts the next request that has arrived, after the app has answered one."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self.pipeline:
            self._start(*cast("tuple[HttpExchange, ASGIApp]", self.pipeline.pop()))
        else:
            self._set_timeout(self.timeout_keep_alive)
        if self.pipeline:  # uvicorn would resume reading, and read more requests than it answers
            return
        if self.flow.waiting:
            self._read(self.flow.waiting)
            return
        self.flow.resume_reading()
        if self._unread and not self._in_body and not self._is_answering:  # part of a head has arrived already
            self._expect_head()

    def shutdown(self) -> None:
        """Closes the connection after the latest request is answered."""
        if self._latest is None or self._latest.response_complete:
            self.transport.close()
        else:
            self._latest.keep_alive = False

    # --- parser callbacks --------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self.url = b""
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._unread = 0
        self._closes_at = None
        parser, headers = self.parser, self.headers
        if parser.should_upgrade():
            return
        version = parser.get_http_version()
        head = RequestHead.of(version, headers)
        if head is None:
            raise HttpParserError
        self._in_body, self._body_left = True, head.body_bytes
        self.headers = []  # otherwise trailers would be added to headers that were already checked
        path, query = parse_target(self.url)
        exchange = HttpExchange(
            {
                "type": "http",
                "asgi": _ASGI,
                "http_version": version,
                "server": self.server,
                "client": self.client,
                "scheme": self.scheme,
                "root_path": "",
                "headers": headers,
                "state": self.app_state.copy(),
                "method": parser.get_method().decode("ascii"),
                "path": unquote(path.decode("ascii")) if b"%" in path else path.decode("ascii"),
                "raw_path": path,
                "query_string": query,
            },
            self.transport,
            self.flow,
            self._heads,
            self.on_response_complete,
            keep_alive=version != "1.0" and parser.should_keep_alive(),
            expects_continue=head.expects_continue,
        )
        answering, self._latest = self._is_answering, exchange
        app = self.app if head.of_proxy else self._direct_app
        if answering:
            self.flow.pause_reading()
            self.pipeline.appendleft((cast("Any", exchange), cast("Any", app)))
        else:
            self._start(exchange, app)

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        self._body_left -= len(body)
        if self._is_answering:
            cast("HttpExchange", self._latest).add_body(body)

    def on_message_complete(self) -> None:
        self._unread = self._body_left = 0
        self._in_body = self._skipping = False
        if self.parser.should_upgrade():
            return
        if self._is_answering:
            exchange = cast("HttpExchange", self._latest)
            exchange.scope["extensions"] = _EXTENSIONS
            exchange.end_body()
        elif self._latest is not None:
            self._expect_head()

    # --- time limits -------------------------------------------------------------------------------------------------

    def _expect_head(self) -> None:
        """Closes the connection if no head is complete within ``HEAD_TIMEOUT_S``."""
        self._set_timeout(HEAD_TIMEOUT_S)

    def _set_timeout(self, seconds: float | None) -> None:
        """Closes the connection after this time unless the limit is changed; None removes the limit."""
        if seconds is None:
            self._closes_at = None
            return
        self._closes_at = closes_at = self.loop.time() + seconds
        if self._timer is None or self._timer.when() > closes_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self.loop.call_at(closes_at, self._check_timeout)

    def _check_timeout(self) -> None:
        self._timer, closes_at = None, self._closes_at
        if closes_at is None:
            return
        if self.loop.time() >= closes_at:
            self.timeout_keep_alive_handler()
        else:
            self._timer = self.loop.call_at(closes_at, self._check_timeout)

    # -----------------------------------------------------------------------------------------------------------------

    def _refuse(self, message: str) -> None:
        self._ended = True
        self.logger.warning(message)
        self.send_400_response(message)

    def _switch_to_h11(self, rest: bytes) -> None:
        """Hands over to an h11 connection, which gets the complete head and the ``rest`` after it."""
        if self._is_answering:
            self.shutdown()
            return
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        head = [method, b" ", self.url, b" HTTP/", version, b"\r\n"]
        for name, value in self.headers:
            head += [name, b": ", value, b"\r\n"]
        successor = _H11Connection(self.config, self.server_state, self.app_state)
        self.connections.discard(self)
        self._set_timeout(None)
        self._unwatch_reader()
        successor.connection_made(self.transport)
        self.transport.set_protocol(successor)
        successor.data_received(b"".join((*head, b"\r\n", rest)))
