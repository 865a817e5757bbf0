"""Messages as lines over two descriptors of any type: pipes, sockets, files or a terminal.

Threads read and write: asyncio does not support files, and an editor that does not read must not block the event loop.
"""

import asyncio
import os
import threading
from concurrent.futures import CancelledError
from contextlib import suppress
from queue import SimpleQueue
from typing import Final

_READ_BYTES: Final = 64 * 1024
_READ_AHEAD: Final = 64
"""The number of lines that are read ahead; then the editor's writes block."""


class LineTooLong:
    """Replaces a line that exceeds the limit."""


class LineSplitter:
    """Splits bytes into lines without newlines; drops empty lines. Pure."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes | LineTooLong]:
        """The lines that these bytes complete."""
        *complete, rest = data.split(b"\n")
        lines = [line for part in complete if (line := self._complete(part)) != b""]
        self._append(rest)
        return lines

    def end(self) -> list[bytes | LineTooLong]:
        """The last line, if no newline ended it."""
        line = self._complete(b"")
        return [] if line == b"" else [line]

    def _append(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._limit:
            self._parts.append(part)
        else:
            self._parts.clear()

    def _complete(self, part: bytes) -> bytes | LineTooLong:
        self._append(part)
        too_long = self._size > self._limit
        line = b"".join(self._parts).strip()
        self._parts, self._size = [], 0
        return LineTooLong() if too_long else line


class LineChannel:
    """The channel to the editor. The caller owns both descriptors; they are used until the process ends."""

    def __init__(self, source: int, sink: int, limit: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._splitter = LineSplitter(limit)
        self._in: asyncio.Queue[bytes | LineTooLong | None] = asyncio.Queue(_READ_AHEAD)
        self._out: SimpleQueue[tuple[bytes, asyncio.Future[None]]] = SimpleQueue()
        self._write_lock = asyncio.Lock()
        self.broken = asyncio.Event()
        """Set when the editor has closed its end."""
        for work, descriptor in ((self._read, source), (self._write, sink)):
            # Daemon threads: they may be blocked in the editor's pipe at exit.
            threading.Thread(target=work, args=(descriptor,), name=f"toold mcp {work.__name__}", daemon=True).start()

    async def read(self) -> bytes | LineTooLong | None:
        """The next line; None at the end."""
        return await self._in.get()

    async def write(self, message: bytes) -> None:
        """Write one whole line, even if the caller is cancelled meanwhile.

        Raises:
            OSError: the editor has closed its end.
        """
        async with self._write_lock:
            written = self._loop.create_future()
            self._out.put((message + b"\n", written))
            try:
                await written
            except OSError:
                self.broken.set()
                raise

    # --- threads -----------------------------------------------------------------------------------------------------

    def _read(self, source: int) -> None:
        with suppress(RuntimeError, CancelledError):  # the loop has ended
            while data := _read_bytes(source):
                for line in self._splitter.feed(data):
                    self._hand_over(line)
            for line in self._splitter.end():
                self._hand_over(line)
            self._hand_over(None)

    def _hand_over(self, line: bytes | LineTooLong | None) -> None:
        put = self._in.put(line)
        try:
            asyncio.run_coroutine_threadsafe(put, self._loop).result()
        except RuntimeError:
            put.close()
            raise

    def _write(self, sink: int) -> None:
        while True:
            message, written = self._out.get()
            failure: OSError | None = None
            rest = memoryview(message)
            try:
                while rest:
                    rest = rest[os.write(sink, rest) :]
            except OSError as error:
                failure = error
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(_settle, written, failure)


def _read_bytes(source: int) -> bytes:
    """The next bytes; empty at the end and on an error."""
    try:
        return os.read(source, _READ_BYTES)
    except OSError:
        return b""


def _settle(written: asyncio.Future[None], failure: OSError | None) -> None:
    if written.done():
        return
    if failure is None:
        written.set_result(None)
    else:
        written.set_exception(failure)
