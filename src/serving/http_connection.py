"""One HTTP/1.1 connection: uvicorn's on httptools, and what that leaves to others (decision 46).

The parser knows no bounds and no time, asks for no Host, and takes a request that asks for another protocol for the end
of HTTP: a body behind it would be lost. Java's client asks so with its first request, for HTTP/2. So what comes is
bounded here until it leads to something, and a connection that asks for another protocol is h11's from then on, which
goes on as if nothing had been asked. Nor does uvicorn bound how many requests wait behind one another, or how long an
answer waits for its reader.
"""

import asyncio
from typing import Any, Final, cast

from httptools import HttpParserError, HttpParserUpgrade
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from .write_batching import BatchingTransport

MAX_HEAD_BYTES: Final = 16 * 1024
"""Of a request's head that is not complete, as h11 has it; also of trailers, and of what stands beside the pieces of a
body. What comes in one piece may be twice as long."""
_FED_BYTES: Final = 16 * 1024
"""What the parser is given at once. The requests in it are all begun, some hundreds of the shortest; what came with
them waits until those have their answers."""
HEAD_TIMEOUT_S: Final = 20.0
"""How long a head may take to come; of a new connection the first."""

STALLED_S: Final = 60.0
"""A reader that is behind (``BEHIND_BYTES``) and takes nothing for so long is given up: an answer is held for it."""

COMPLETE: Final = "toold.complete"
"""An extension in an ASGI scope: the whole request has come, so nothing of it has to be waited for."""
_EXTENSIONS: Final[dict[str, dict[object, object]]] = {COMPLETE: {}}


class _Flow(FlowControl):
    """Reading stays paused while there is something read that waits, whoever would go on."""

    waiting = b""

    def resume_reading(self) -> None:
        if not self.waiting:
            super().resume_reading()


class _Bounded:
    """What both kinds of connection do about readers that take nothing."""

    transport: asyncio.Transport
    flow: FlowControl
    loop: asyncio.AbstractEventLoop
    _stalled: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        self.flow.pause_writing()
        self._watch_reader(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        self._forget_reader()

    def _watch_reader(self, unsent: int) -> None:
        self._forget_reader()
        self._stalled = self.loop.call_later(STALLED_S, self._judge_reader, unsent)

    def _judge_reader(self, before: int) -> None:
        unsent = self.transport.get_write_buffer_size()
        if unsent < before:
            self._watch_reader(unsent)
        else:
            self.transport.abort()

    def _forget_reader(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


class _H11Connection(_Bounded, H11Protocol):
    """One whose peer asks for another protocol, and is answered in this one: nothing to warn of at each request."""

    _head: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # h11 bounds the bytes of a head, and nobody its time: uvicorn's own ends with the first of them.
        answering = self.cycle is not None and not self.cycle.response_complete  # type: ignore[redundant-expr]
        if answering or not self.conn.trailing_data[0]:
            self._forget_head()
        elif self._head is None:
            self._head = self.loop.call_later(HEAD_TIMEOUT_S, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head()
        self._forget_reader()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def _forget_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _unsupported_upgrade_warning(self) -> None:
        pass


class HttpConnection(_Bounded, HttpToolsProtocol):
    """Satisfies ``asyncio.Protocol``; each instance serves one connection."""

    flow: _Flow
    # Bytes that have led to nothing yet, which are a part of a head, most often.
    _unread = 0
    _in_body = False
    # The request that is being answered, which is not the latest where others wait behind it.
    _answered: RequestResponseCycle | None = None
    # What else comes is not looked at.
    _ends = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's streams have no such base.
        stream = cast("asyncio.Transport", transport)
        super().connection_made(cast("asyncio.Transport", BatchingTransport(stream)))
        self.flow = _Flow(self.transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset_keepalive_if_required()  # uvicorn leaves it where the peer broke the connection off
        self._forget_reader()
        super().connection_lost(exc)
        if self._answered is not None and not self._answered.response_complete:  # uvicorn tells the latest alone
            self._answered.disconnected = True
            self._answered.message_event.set()

    def data_received(self, data: bytes) -> None:
        self._read(self.flow.waiting + data if self.flow.waiting else data)

    def _read(self, data: bytes) -> None:
        """Have it parsed until a request has to wait for its turn; the rest waits with that."""
        at = 0
        while at < len(data) and not self.pipeline and not self._ends:
            self._parse(data, at)
            at += _FED_BYTES
        self.flow.waiting = b"" if self._ends else data[at:]
        if self.flow.waiting:
            self.flow.pause_reading()

    def _parse(self, all_: bytes, at: int) -> None:
        data = all_[at : at + _FED_BYTES]
        begins = not self._unread
        self._unread += len(data)
        if self._in_body and self.cycle.response_complete:  # what is left of a request that has its answer
            self._expect_head()
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as asked:
            self._ends = True
            self._hand_over(all_[at + asked.args[0] :])
        except HttpParserError:
            self._refuse("Invalid HTTP request received.")
        else:
            if self._unread > MAX_HEAD_BYTES:
                self._refuse(f"The head of a request has more than {MAX_HEAD_BYTES} bytes.")
            elif begins and self._unread and not self._in_body and not self._is_answering:
                self._expect_head()

    # --- what uvicorn does of a request ------------------------------------------------------------------------------

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if self.pipeline:  # uvicorn reads on at each answer, and so more requests than it answers
            self.flow.pause_reading()
        elif self.flow.waiting:
            self._read(self.flow.waiting)
        elif self._unread and not self._in_body and not self._is_answering:  # a part of a head, from before
            self._expect_head()

    @property
    def _is_answering(self) -> bool:
        # None before the first request, which uvicorn's types leave out.
        return self.cycle is not None and not self.cycle.response_complete  # type: ignore[redundant-expr]

    # --- what the parser tells of ------------------------------------------------------------------------------------

    def on_headers_complete(self) -> None:
        self._unread = 0
        self._unset_keepalive_if_required()
        if not self.parser.should_upgrade():
            if not _is_sound(self.parser.get_http_version(), self.headers):
                raise HttpParserError
            self._in_body = True
            super().on_headers_complete()
            self.headers = []  # trailers would join the headers of a request that was judged by these

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unread = 0
        self._in_body = False
        if not self.parser.should_upgrade():
            super().on_message_complete()
            self.scope["extensions"] = _EXTENSIONS
            if self.cycle.response_complete:
                self._expect_head()

    # -----------------------------------------------------------------------------------------------------------------

    def _expect_head(self) -> None:
        """Close the connection where no head is complete by then."""
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(HEAD_TIMEOUT_S, self.timeout_keep_alive_handler)

    def _refuse(self, message: str) -> None:
        self._ends = True
        self.logger.warning(message)
        self.send_400_response(message)

    def _hand_over(self, rest: bytes) -> None:
        """Have h11 read the request whose head is complete, with the ``rest`` behind it, and all that follow."""
        if self._is_answering:
            self.shutdown()
            return
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        head = [method, b" ", self.url, b" HTTP/", version, b"\r\n"]
        for name, value in self.headers:
            head += [name, b": ", value, b"\r\n"]
        successor = _H11Connection(self.config, self.server_state, self.app_state)
        self.connections.discard(self)
        self._forget_reader()
        successor.connection_made(self.transport)
        self.transport.set_protocol(successor)
        successor.data_received(b"".join((*head, b"\r\n", rest)))


def _is_sound(version: str, headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether the parser, which looks at less, and whoever stands before this port agree on what the request is: one
    Host in HTTP/1.1 (RFC 9112, 3.2), and no coding of the body but chunks (6.1).
    """
    hosts = 0
    for name, value in headers:
        if name == b"host":
            hosts += 1
        elif name == b"transfer-encoding" and value.lower() != b"chunked":
            return False
    return hosts == 1 if version == "1.1" else version == "1.0" and hosts <= 1
