"""A WebSocket connection whose writes are joined (``serving.BatchingTransport``), in a register while it lasts."""

import asyncio
import time
from typing import Any, Final, cast

import structlog
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import SecurityError

from ...serving import BEHIND_BYTES, BatchingTransport

_log = structlog.get_logger("toold.websocket")

_PONG: Final = b"\x8a"
"""The first byte of a pong frame (RFC 6455, 5.2)."""


class WebSocketTransport(BatchingTransport):
    """The same, for a peer that pings and does not read: its pongs would fill the memory."""

    __slots__ = ()

    def write(self, data: bytes) -> None:
        if data[:1] == _PONG and self.get_write_buffer_size() > BEHIND_BYTES:
            return  # RFC 6455 asks for the last pong only
        super().write(data)


class PeerConnection(ServerConnection):
    """A connection on such a transport, in a register from its first byte to its last, which knows whether its reader
    is behind, and when the peer was last heard. Where it never becomes a WebSocket, that is a line in the log."""

    def __init__(self, *args: Any, register: set["PeerConnection"], **options: Any) -> None:
        super().__init__(*args, **options)
        self._register = register
        # Since when a reader that is behind has taken nothing; None while it is not behind.
        self._stalled_at: float | None = None
        self._stalled_bytes = 0
        self._heard_at = time.monotonic()

    def silent_for(self, now: float) -> float:
        """For how many seconds nothing has come from the peer: no frame and no pong, nor a part of one."""
        return now - self._heard_at

    def stalled_for(self, now: float) -> float:
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
        super().connection_made(cast("asyncio.Transport", WebSocketTransport(stream)))

    def connection_lost(self, exc: Exception | None) -> None:
        self._register.discard(self)
        # The library is silent about peers that speak no HTTP or leave too early, and not about too long requests.
        if self.response is None and not isinstance(self.protocol.handshake_exc, SecurityError):
            peer = self.transport.get_extra_info("peername") or ("unknown",)
            _log.info("handshake refused: no WebSocket request came", peer=":".join(map(str, peer[:2])))
        super().connection_lost(exc)
