"""A WebSocket connection that batches writes (``serving.BatchingTransport``), tracks whether its peer reads, and parses
received data in small pieces. It parses short texts itself (``leading_texts``) and all other frames with the library.
"""

import asyncio
import codecs
import logging
import time
from collections.abc import Generator
from http import HTTPStatus
from typing import Any, Final, cast

import structlog
from websockets.asyncio.messages import MAX_FRAGMENTS
from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed, SecurityError
from websockets.frames import DATA_OPCODES, CloseCode, Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import OPEN, Event
from websockets.server import ServerProtocol
from websockets.streams import StreamReader

from ...serving import ConnectionSlots
from ..off_loop import off_loop
from .large_frames import LARGE_BYTES, LargeFrames
from .websocket_frames import LongText, begun_text, leading_texts, text_header
from .websocket_transport import WebSocketTransport

_log = structlog.get_logger("toold.websocket")

# A connection uses these shared values after its handshake, to save memory.
_REQUEST: Final = Request("", Headers())
_RESPONSE: Final = Response(HTTPStatus.SWITCHING_PROTOCOLS, "", Headers())
_library_log: Final = logging.getLogger("websockets.server")

_PIECE_BYTES: Final = 4 * 1024
"""Data is parsed in pieces of this size: up to 683 frames, which take some 5 ms. Pieces of a long frame are longer."""
_PARSE_S: Final = 0.005
"""After this time, the other connections get their turn. One read can contain 43,000 empty frames (256 KiB)."""

MAX_HELLO_BYTES: Final = 64 * 1024
"""The limit of the first message: an OAuth token has up to 16 KiB, everything else in a hello less."""
_QUEUED_MESSAGES: Final = 16
"""Reading pauses when more messages than this wait, and resumes at a quarter of them; as in the library."""

_UTF8_PIECE_BYTES: Final = 1024 * 1024


class BinaryMessage(bytes):
    """A message in binary frames, which the daemon refuses."""


class PeerConnection(ServerConnection):
    """A connection, which stays in ``register`` from its first byte to its last. It tracks whether its reader is behind
    and when the peer last sent data. A connection that never becomes a WebSocket is logged.

    The first message has at most ``MAX_HELLO_BYTES``; nothing after it is read until ``read_on``.
    """

    # Slots keep the instance's dict small enough for CPython's compact form.
    __slots__ = (
        *("_arrival", "_displaced", "_expected", "_fragments", "_fragments_binary", "_full", "_greeted"),
        *("_has_large_frame", "_large_frames", "_long_text", "_max_frame_bytes", "_messages"),
        *("_parsing_scheduled", "_pinged_at", "_principal", "_received", "_received_at", "_register", "_slots"),
        *("_stalled_at", "_stalled_bytes", "_turn", "_unparsed", "_waiting_texts"),
    )

    transport: WebSocketTransport  # type: ignore[assignment]

    def __init__(
        self,
        *args: Any,
        register: set["PeerConnection"],
        slots: ConnectionSlots["PeerConnection"],
        large_frames: LargeFrames,
        max_frame_bytes: int,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self._register = register
        self._slots = slots
        self._max_frame_bytes = max_frame_bytes
        self._displaced = False
        self._large_frames = large_frames
        self._principal = ""
        # A large frame is being received, or is complete but not handled.
        self._has_large_frame = False
        self._received: bytearray = self.protocol.reader.buffer
        # Set on the instance and deleted after the first message, so that later frames cost nothing.
        self.protocol.recv_frame = self._receive_first_frames  # type: ignore[method-assign]
        # When the reader last read something, while it is behind; otherwise None.
        self._stalled_at: float | None = None
        self._stalled_bytes = 0
        self._received_at = self._pinged_at = time.monotonic()
        self._unparsed = b""
        self._parsing_scheduled = False
        # The size of the part of a frame that the parser waits for; 0 between frames.
        self._expected = 0
        # A large text that is being received; the library gets nothing of it.
        self._long_text: LongText | None = None
        self.protocol.reader.read_exact = self._read_exact  # type: ignore[method-assign, assignment]
        # The library keeps the first message and everything before it. Later messages are kept here.
        self._greeted = False
        self._messages: list[bytes] = []
        self._full = False
        # The parts of a fragmented message so far.
        self._fragments: list[bytes | bytearray | memoryview] = []
        self._fragments_binary = False
        # The texts that wait for their turn to be sent.
        self._waiting_texts = 0
        self._turn: asyncio.Lock | None = None
        # Set while ``receive`` waits for a message or for the end of the connection.
        self._arrival: asyncio.Future[None] | None = None

    def admit(self) -> bool:
        """Takes a place among the authenticated connections. Returns False if all are taken."""
        return self._slots.authenticate(self)

    def read_on(self, principal: str) -> None:
        """Reads the messages after the first one. Frees the memory that only the handshake and the first message
        needed."""
        self._principal = principal
        self.request, self.response = _REQUEST, _RESPONSE
        self.protocol.logger = self.logger = _library_log
        del self.request_rcvd
        self.drain_waiters = []  # type: ignore[assignment] # an empty deque has 0.6 KiB
        self.recv_messages.frames.queue = ()  # type: ignore[assignment] # as above; no further frame is added
        self.transport.release_reading()

    def ping_if_due(self, interval_s: float, now: float) -> None:
        """Sends a ping if the last one was sent ``interval_s`` ago, unless the reader is behind."""
        if now - self._pinged_at >= interval_s and self.protocol.state is OPEN and not self.paused:
            self._pinged_at = now
            self.protocol.send_ping(b"")
            self.send_data()

    def frame_handled(self) -> None:
        """A large message has been handled: the next one may be received."""
        if self._has_large_frame and not self._is_receiving_large:
            self._has_large_frame = False
            self._large_frames.release(self, time.monotonic())
            self.transport.release_reading()

    def go_on(self) -> None:
        """Receives the rest of a large frame."""
        self.transport.release_reading()

    def displace(self) -> None:
        """Closes the connection, because a newcomer takes its place."""
        self._displaced = True
        self.transport.abort()

    def reject(self) -> None:
        """Continues reading, to notice when the peer closes the connection, but receives no further large message."""
        self.protocol.max_message_size = MAX_HELLO_BYTES
        self.transport.release_reading()

    def silent_for(self, now: float) -> float:
        """Returns the seconds since the peer last sent anything, even part of a frame or a pong."""
        return now - self._received_at

    def stalled_for(self, now: float) -> float:
        """Returns the seconds for which a reader that is behind has read nothing; 0 if it is not behind."""
        if self._stalled_at is None:
            return 0.0
        waiting = self.transport.get_write_buffer_size()
        if waiting < self._stalled_bytes:
            self._stalled_at = now
        self._stalled_bytes = waiting
        return now - self._stalled_at

    async def receive(self) -> bytes:
        """Returns the next message: the UTF-8 of a text, or a ``BinaryMessage``.

        Raises:
            ConnectionClosed: the connection has ended, perhaps because of a text that is not UTF-8.
        """
        messages = self._messages
        while not messages:
            if self.recv_messages.closed:
                await self.recv()  # raises ConnectionClosed
            self._arrival = self.loop.create_future()
            await self._arrival
        data = messages.pop(0)
        if self._full and len(messages) <= _QUEUED_MESSAGES // 4:
            self._full = False
            self.transport.resume_reading()
        if not data.isascii() and not isinstance(data, BinaryMessage):
            try:
                if len(data) <= LARGE_BYTES:
                    data.decode()
                else:
                    await off_loop(_check_utf8, data)
            except UnicodeDecodeError as error:
                await self.close(CloseCode.INVALID_DATA, error.reason)
                await self.recv()  # raises ConnectionClosed
        return data

    def send_at_once(self, payload: bytes) -> bool:
        """Sends a text if that needs no wait: the reader is not behind, and no other text waits. A connection that is
        closing drops it.
        """
        if self.protocol.state is not OPEN:
            return True
        return not self._waiting_texts and self.transport.write_at_once(text_header(len(payload)), payload)

    async def send_in_turn(self, payload: bytes) -> None:
        """Sends a text after those that wait, and waits while the reader is behind, so that the buffer holds at most
        one large text. A connection that is closing drops it.
        """
        if self._turn is None:
            self._turn = asyncio.Lock()
        self._waiting_texts += 1
        try:
            async with self._turn, self.send_context():
                self.protocol.writes += (text_header(len(payload)), payload)  # as `send` does, without copying the text
        except ConnectionClosed:
            pass
        finally:
            self._waiting_texts -= 1

    def process_event(self, event: Event) -> None:
        if not isinstance(event, Frame) or event.opcode not in DATA_OPCODES:
            super().process_event(event)
        elif self._greeted:
            self._add_frame(event)
        else:
            self._greeted = event.fin
            super().process_event(event)

    def _add_frame(self, frame: Frame) -> None:
        if frame.opcode is not Opcode.CONT:
            self._fragments_binary = frame.opcode is Opcode.BINARY
        self._fragments.append(frame.data)
        if frame.fin:
            message = b"".join(self._fragments)  # does not copy a single one
            self._fragments.clear()
            self._add_messages([BinaryMessage(message) if self._fragments_binary else message])
        elif len(self._fragments) >= MAX_FRAGMENTS:
            self.protocol.fail(CloseCode.MESSAGE_TOO_BIG, "too many fragments")
            self.send_data()

    def _add_messages(self, messages: list[bytes]) -> None:
        self._messages += messages
        if not self._full and len(self._messages) > _QUEUED_MESSAGES:
            self._full = True
            self.transport.pause_reading()
        self._wake_receiver()

    def _wake_receiver(self) -> None:
        if self._arrival is not None:
            if not self._arrival.done():  # otherwise it is cancelled
                self._arrival.set_result(None)
            self._arrival = None

    def data_received(self, data: bytes) -> None:
        self._received_at = time.monotonic()
        if not self._unparsed and len(data) <= self._next_piece():
            self._feed(data)
            return
        self._unparsed += data
        if not self._parsing_scheduled:
            self._parse()

    def _next_piece(self) -> int:
        """The number of bytes to parse next: a small piece, which may contain many frames, or the rest of a long
        frame."""
        text = self._long_text
        received = len(self._received) if text is None else text.received
        missing = self._expected - received if text is None else text.missing
        if (text is not None or self._expected > LARGE_BYTES) and not self._has_large_frame:
            return min(missing, max(_PIECE_BYTES, LARGE_BYTES + 1 - received))  # above this, it waits for its turn
        return max(_PIECE_BYTES, missing) if text is None else missing

    def _read_exact(self, size: int) -> Generator[None, None, bytes | bytearray]:
        """Replaces the library's function, to track the data that the library waits for."""
        self._expected = size
        data = yield from StreamReader.read_exact(self.protocol.reader, size)
        self._expected = 0
        return data

    def _feed(self, data: bytes) -> None:
        if self._long_text is not None:
            self._long_text.add(data)
        elif self._greeted and not self._expected and not self._has_large_frame and self._is_between_messages:
            texts, end = leading_texts(data, self._max_frame_bytes)
            if texts:
                self._add_messages(texts)
                if end == len(data):
                    return
                data = data[end:]
            self._long_text = begun_text(data, LARGE_BYTES, self.protocol.max_message_size or 0)
            if self._long_text is None:
                super().data_received(data)
        else:
            super().data_received(data)
        if self._long_text is not None and not self._long_text.missing:
            text, self._long_text = self._long_text, None
            self._add_messages([text.payload()])
        if self._is_receiving_large is not self._has_large_frame:
            if not self._has_large_frame:
                self._has_large_frame = True
                if self._large_frames.request(self, self._principal, time.monotonic()):
                    return
            self.transport.hold_reading()  # until its turn, or until its frame has been handled

    @property
    def _is_between_messages(self) -> bool:
        """Whether the library accepts messages and has no part of one."""
        return not self._received and self.protocol.current_size is None and self.protocol.state is OPEN

    @property
    def _is_receiving_large(self) -> bool:
        if self._long_text is not None:
            return self._long_text.received > LARGE_BYTES
        return len(self._received) > LARGE_BYTES or (self.protocol.current_size or 0) > LARGE_BYTES

    def _continue_parsing(self) -> None:
        if self._unparsed and not self._parsing_scheduled:
            self._parsing_scheduled = True
            self.loop.call_soon(self._parse)

    def _parse(self) -> None:
        """Parses data until the library has enough frames or other connections get their turn."""
        self._parsing_scheduled = True
        data, at, until = self._unparsed, 0, time.monotonic() + _PARSE_S
        while at < len(data) and not self.transport.blocked:
            end = at + self._next_piece()
            self._feed(data[at:end])
            at = end
            if time.monotonic() >= until:
                break
        self._unparsed = data[at:]
        self._parsing_scheduled = False
        self.transport.set_unparsed(unparsed=bool(self._unparsed))
        if not self.transport.blocked:
            self._continue_parsing()

    def pause_writing(self) -> None:
        self._stalled_at = time.monotonic()
        self._stalled_bytes = 0
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stalled_at = None
        super().resume_writing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._register.add(self)
        stream = cast("asyncio.Transport", transport)  # uvloop's streams do not inherit it
        super().connection_made(cast("asyncio.Transport", WebSocketTransport(stream, self._continue_parsing)))
        address = transport.get_extra_info("peername")
        displaced = self._slots.enter(self, address[0] if isinstance(address, tuple) else "")
        if displaced is not None:
            displaced.displace()

    def connection_lost(self, exc: Exception | None) -> None:
        self._register.discard(self)
        self._slots.leave(self)
        self._large_frames.release(self, time.monotonic())
        self._unparsed = b""
        self._long_text = None
        # The library does not log peers that do not speak HTTP or that leave early. It logs requests that are too long.
        if self.response is None and not self._displaced and not isinstance(self.protocol.handshake_exc, SecurityError):
            peer = self.transport.get_extra_info("peername") or ("unknown",)
            _log.info("handshake refused: no WebSocket request received", peer=":".join(map(str, peer[:2])))
        super().connection_lost(exc)
        self._wake_receiver()

    def _receive_first_frames(self, frame: Frame) -> None:
        """Handles the frames of the first message; with its last one, the connection is held until it is admitted."""
        ServerProtocol.recv_frame(self.protocol, frame)
        if frame.fin and frame.opcode in DATA_OPCODES:
            del self.protocol.recv_frame
            # Data that arrived after the hello is parsed at once.
            self.protocol.max_message_size = self._max_frame_bytes
            self.transport.hold_reading()


def _check_utf8(data: bytes) -> None:
    """Checks the data in pieces, so that other threads run in between.

    Raises:
        UnicodeDecodeError: the data is not UTF-8.
    """
    decode = codecs.getincrementaldecoder("utf-8")().decode
    for start in range(0, len(data), _UTF8_PIECE_BYTES):
        decode(data[start : start + _UTF8_PIECE_BYTES], start + _UTF8_PIECE_BYTES >= len(data))
