"""A WebSocket connection that batches writes (``serving.BatchingTransport``) and tracks whether its peer reads."""

import asyncio
import time
from typing import Any, Final, cast

import structlog
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import SecurityError

from ...serving import SLOW_READER_BYTES, BatchingTransport

_log = structlog.get_logger("toold.websocket")

_PONG: Final = b"\x8a"
"""The first byte of a pong frame (RFC 6455, 5.2)."""


class WebSocketTransport(BatchingTransport):
    """A batching transport that drops pongs for a peer that pings but does not read: they would fill the memory."""

    __slots__ = ()

    def write(self, data: bytes) -> None:
        if data[:1] == _PONG and self.get_write_buffer_size() > SLOW_READER_BYTES:
            return  # RFC 6455 requires only the last pong
        super().write(data)


class PeerConnection(ServerConnection):
    """A connection that is in ``register`` from its first byte to its last. It knows whether its reader is behind and
    when the peer last sent data. A connection that never becomes a WebSocket is logged."""

    def __init__(self, *args: Any, register: set["PeerConnection"], **options: Any) -> None:
        super().__init__(*args, **options)
        self._register = register
        # When the reader that is behind last read something; None while it is not behind.
        self._stalled_at: float | None = None
        self._stalled_bytes = 0
        self._received_at = time.monotonic()

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

    def data_received(self, data: bytes) -> None:
        self._received_at = time.monotonic()
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
        stream = cast("asyncio.Transport", transport)  # uvloop's streams do not inherit it
        super().connection_made(cast("asyncio.Transport", WebSocketTransport(stream)))

    def connection_lost(self, exc: Exception | None) -> None:
        self._register.discard(self)
        # The library logs neither peers that do not speak HTTP nor those that leave early; it does log too long
        # requests.
        if self.response is None and not isinstance(self.protocol.handshake_exc, SecurityError):
            peer = self.transport.get_extra_info("peername") or ("unknown",)
            _log.info("handshake refused: no WebSocket request received", peer=":".join(map(str, peer[:2])))
        super().connection_lost(exc)
