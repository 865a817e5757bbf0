"""A minimal WebSocket client, so that the server dominates the time.

It sends unfragmented text frames with a mask of zeros, which the server unmasks as usual, and reads only the length of
the answers. For loopback and well-behaved servers only; ``toold.client`` is a real client.
"""

import asyncio
import base64
import os
import struct
from collections.abc import Callable
from typing import Final, cast

HELLO: Final = b'{"op":"hello","session_id":"benchmark"}'
TEXT: Final = 0x1
CLOSE: Final = 0x8
PING: Final = 0x9
PONG: Final = 0xA


def masked(opcode: int, payload: bytes) -> bytes:
    """A final client frame with a mask of zeros."""
    size = len(payload)
    if size < 126:
        header = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
    elif size < 65536:
        header = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, size)
    else:
        header = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, size)
    return header + b"\0\0\0\0" + payload


def next_frame(buffer: bytearray, position: int) -> tuple[int, int, int] | None:
    """Opcode, start and end of the payload of the server's frame at ``position``; None if it is incomplete."""
    available = len(buffer) - position
    if available < 2:
        return None
    size, start = buffer[position + 1], position + 2
    if size == 126:
        if available < 4:
            return None
        size, start = int.from_bytes(buffer[start : start + 2]), start + 2
    elif size == 127:
        if available < 10:
            return None
        size, start = int.from_bytes(buffer[start : start + 8]), start + 8
    if len(buffer) < start + size:
        return None
    return buffer[position] & 0x0F, start, start + size


class Connection(asyncio.Protocol):
    """One connection. ``on_text`` gets the payload of every text frame; pings are answered."""

    def __init__(self) -> None:
        self.on_text: Callable[[bytes], None] = lambda _: None
        self.closed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Done when the server closes the connection; its result is the server's reason."""
        self._upgraded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._reason = "the connection was lost"

    @classmethod
    async def open(cls, port: int, hello: bytes, path: str = "/") -> "Connection":
        """Connect to a loopback port, send ``hello`` and wait for the first frame.

        Raises:
            ConnectionError: the server refused the upgrade, or closed the connection.
        """
        loop = asyncio.get_running_loop()
        transport, connection = await loop.create_connection(cls, "127.0.0.1", port)
        key = base64.b64encode(os.urandom(16)).decode()
        transport.write(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        await connection._upgraded
        answer: asyncio.Future[bytes] = loop.create_future()
        connection.on_text = lambda payload: None if answer.done() else answer.set_result(payload)
        connection.send(masked(TEXT, hello))
        await asyncio.wait((answer, connection.closed), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise ConnectionError(connection.closed.result())
        return connection

    def send(self, frame: bytes) -> None:
        """Send a complete frame (``masked``)."""
        assert self._transport is not None
        self._transport.write(frame)

    def close(self) -> None:
        """Send a close frame (1000), and close without waiting for the answer."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(masked(CLOSE, struct.pack("!H", 1000)))
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._upgraded.done() and not self._upgrade():
            return
        position = 0
        while (frame := next_frame(self._buffer, position)) is not None:
            opcode, start, position = frame
            payload = bytes(self._buffer[start:position])
            if opcode == TEXT:
                self.on_text(payload)
            elif opcode == PING:
                self.send(masked(PONG, payload))
            elif opcode == CLOSE:
                self._reason = f"closed by the server: {payload[:2].hex()} {payload[2:].decode(errors='replace')}"
                self.send(masked(CLOSE, payload))  # the server closes it
        del self._buffer[:position]

    def _upgrade(self) -> bool:
        head, end, _ = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return False
        status = bytes(head).partition(b"\r\n")[0].decode(errors="replace")
        if " 101 " not in status:
            self._upgraded.set_exception(ConnectionError(f"the server answered {status!r} to the upgrade"))
            return False
        del self._buffer[: len(head) + len(end)]
        self._upgraded.set_result(None)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        reason = f"{self._reason}: {exc}" if exc else self._reason
        if not self._upgraded.done():
            self._upgraded.set_exception(ConnectionError(reason))
        if not self.closed.done():
            self.closed.set_result(reason)
