"""Batches the writes of one event loop iteration.

Data written to one connection in the same iteration is sent with one system call: the answers of calls that end
together, or an answer's head and body. With many calls in flight, system calls are the largest cost of an answer
(decision 7). A single write is sent in the next iteration, some microseconds later. More than ``SLOW_READER_BYTES`` is
written immediately, because only the underlying transport can make the writer wait.
"""

import asyncio
from typing import Any, Final

SLOW_READER_BYTES: Final = 64 * 1024
"""A reader with more unsent bytes than this is behind; equal to the transports' high-water mark."""


class BatchingTransport:
    """A transport that delays writes until the end of the event loop iteration."""

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
        if self._unsent_bytes > SLOW_READER_BYTES:
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
            unsent, size = self._unsent, self._unsent_bytes
            self._unsent, self._unsent_bytes = [], 0
            if self._transport.is_closing():  # it may have been closed meanwhile; uvloop's transport would raise
                return
            if len(unsent) == 1:
                self._transport.write(unsent[0])
            elif size > SLOW_READER_BYTES:  # long data is not copied
                self._transport.writelines(unsent)
            else:
                self._transport.write(b"".join(unsent))
