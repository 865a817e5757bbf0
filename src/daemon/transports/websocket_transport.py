"""The transport of a WebSocket connection: controls its writes and pauses its reading."""

import asyncio
from collections.abc import Callable
from typing import Final

from ...serving import SLOW_READER_BYTES, BatchingTransport

_PONG: Final = b"\x8a"
"""The first byte of a pong frame (RFC 6455, 5.2)."""


class WebSocketTransport(BatchingTransport):
    """A batching transport that drops pongs for a peer that pings but does not read, since they would fill the memory.

    Reading is paused by the library, while too many frames wait; by ``hold_reading``; and while received data is not
    parsed yet.
    """

    __slots__ = ("_held", "_on_unblocked", "_paused", "_reading", "_unparsed")

    def __init__(self, transport: asyncio.Transport, on_unblocked: Callable[[], None]) -> None:
        super().__init__(transport)
        self._on_unblocked = on_unblocked
        self._held = False
        self._paused = False
        self._unparsed = False
        self._reading = True

    @property
    def blocked(self) -> bool:
        """Whether no further frames should be parsed."""
        return self._held or self._paused

    def pause_reading(self) -> None:
        self._paused = True
        self._set_reading()

    def resume_reading(self) -> None:
        self._paused = False
        self._unblock()

    def hold_reading(self) -> None:
        """Receives nothing until ``release_reading``."""
        self._held = True
        self._set_reading()

    def release_reading(self) -> None:
        self._held = False
        self._unblock()

    def set_unparsed(self, *, unparsed: bool) -> None:
        """Receives nothing while there is unparsed data."""
        self._unparsed = unparsed
        self._set_reading()

    def write_at_once(self, header: bytes, payload: bytes) -> bool:
        """Writes a frame unless this would put the reader behind. Returns whether it was written."""
        if self.get_write_buffer_size() + len(payload) > SLOW_READER_BYTES:
            return False
        super().write(header + payload)
        return True

    def write(self, data: bytes) -> None:
        if data[:1] == _PONG and self.get_write_buffer_size() > SLOW_READER_BYTES:
            return  # RFC 6455 requires only the last pong
        super().write(data)

    def _unblock(self) -> None:
        self._set_reading()
        if not self.blocked:
            self._on_unblocked()

    def _set_reading(self) -> None:
        reading = not (self._held or self._paused or self._unparsed)
        if reading is not self._reading and not self.is_closing():
            self._reading = reading
            (self._transport.resume_reading if reading else self._transport.pause_reading)()
