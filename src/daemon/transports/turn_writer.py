"""Writes of one turn of the event loop, joined into one.

The answers of calls that end in the same turn go out with one system call for each connection instead of one for each
answer: with many calls in flight that is the largest single cost of an answer (decision 7). An answer that is alone
leaves in the next turn, some microseconds later. What comes to more than a reader may be behind goes out at once: only
the transport itself can have who writes wait.
"""

import asyncio
import time
from typing import Any, Final, cast

import structlog
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import SecurityError

_log = structlog.get_logger("toold.websocket")

_PONG: Final = b"\x8a"
"""The first byte of a pong frame (RFC 6455, 5.2)."""
_BEHIND_BYTES: Final = 64 * 1024
"""With more than this unsent a reader is behind; the transports' own high-water mark."""


class TurnTransport:
    """A transport that keeps what is written until the end of the turn; all else is the transport's own."""

    __slots__ = ("_call_soon", "_scheduled", "_transport", "_unsent", "_unsent_bytes")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._call_soon = asyncio.get_running_loop().call_soon
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._scheduled = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if data[:1] == _PONG and self.get_write_buffer_size() > _BEHIND_BYTES:
            return  # a peer that pings and does not read would fill the memory; RFC 6455 asks for the last pong only
        self._unsent.append(data)
        self._unsent_bytes += len(data)
        if self._unsent_bytes > _BEHIND_BYTES:
            self._flush()
        elif not self._scheduled:
            self._scheduled = True
            self._call_soon(self._flush)

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size() + self._unsent_bytes

    def write_eof(self) -> None:
        self._flush()
        self._transport.write_eof()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        self._unsent.clear()
        self._unsent_bytes = 0
        self._transport.abort()

    def _flush(self) -> None:
        self._scheduled = False
        if self._unsent:
            data = self._unsent[0] if len(self._unsent) == 1 else b"".join(self._unsent)
            self._unsent.clear()
            self._unsent_bytes = 0
            if not self._transport.is_closing():  # the connection broke within the turn, and uvloop's raises then
                self._transport.write(data)


class TurnConnection(ServerConnection):
    """A connection on such a transport, in a register from its first byte to its last, which knows whether its reader
    is behind, and when the peer was last heard. Where it never becomes a WebSocket, that is a line in the log."""

    def __init__(self, *args: Any, register: set["TurnConnection"], **options: Any) -> None:
        super().__init__(*args, **options)
        self._register = register
        # Since when a reader that is behind has taken nothing; None while it is not behind.
        self._stalled_at: float | None = None
        self._stalled_bytes = 0
        self._heard_at = time.monotonic()

    def silent_for(self, now: float) -> float:
        """For how many seconds nothing has come from the peer: no frame and no pong, nor a part of one."""
        return now - self._heard_at

    def unread_for(self, now: float) -> float:
        """For how many seconds a reader that is behind has taken nothing of what waits for it."""
        if self._stalled_at is None:
            return 0.0
        waiting = self.transport.get_write_buffer_size()
        if waiting < self._stalled_bytes:
            self._stalled_at = now
        self._stalled_bytes = waiting
        return now - self._stalled_at

    def data_received(self, data: bytes) -> None:
        self._heard_at = time.monotonic()
        super().data_received(data)

    def pause_writing(self) -> None:
        self._stalled_at = time.monotonic()
        self._stalled_bytes = 0
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stalled_at = None
        super().resume_writing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._register.add(self)
        stream = cast("asyncio.Transport", transport)  # a server's connections are streams; uvloop's have no such base
        super().connection_made(cast("asyncio.Transport", TurnTransport(stream)))

    def connection_lost(self, exc: Exception | None) -> None:
        self._register.discard(self)
        # The library is silent about peers that speak no HTTP or leave too early, and not about too long requests.
        if self.response is None and not isinstance(self.protocol.handshake_exc, SecurityError):
            peer = self.transport.get_extra_info("peername") or ("unknown",)
            _log.info("handshake refused: no WebSocket request came", peer=":".join(map(str, peer[:2])))
        super().connection_lost(exc)
