"""Writes of one turn of the event loop, joined into one.

What is written to one connection in the same turn goes out with one system call: the answers of calls that end
together, an answer's head and its body. With many calls in flight that is the largest single cost of an answer
(decision 7). What is alone leaves in the next turn, some microseconds later. What comes to more than a reader may be
behind goes out at once: only the transport itself can have who writes wait.
"""

import asyncio
from typing import Any, Final

BEHIND_BYTES: Final = 64 * 1024
"""With more than this unsent a reader is behind; the transports' own high-water mark."""


class BatchingTransport:
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
        self._unsent.append(data)
        self._unsent_bytes += len(data)
        if self._unsent_bytes > BEHIND_BYTES:
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
