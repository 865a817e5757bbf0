"""The writes that a WebSocket connection drops; ``serving`` tests how they are batched."""

import asyncio
from typing import cast

from toold.daemon.transports.websocket_transport import WebSocketTransport

PONG = b"\x8a\x00"


class Behind:
    """A transport with this many unsent bytes."""

    def __init__(self, unread: int) -> None:
        self.unread = unread
        self.taken = b""

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes) -> None:
        self.taken += data

    def get_write_buffer_size(self) -> int:
        return self.unread


async def test_pongs_for_a_peer_that_does_not_read_are_dropped() -> None:
    """A peer could fill the memory by pinging; other writes are not dropped."""
    for unread, taken in ((64 * 1024, PONG + b"x"), (64 * 1024 + 1, b"x")):
        reader = Behind(unread)
        transport = WebSocketTransport(cast("asyncio.Transport", reader), lambda: None)
        transport.write(PONG)
        transport.write(b"x")
        await asyncio.sleep(0)
        assert reader.taken == taken
