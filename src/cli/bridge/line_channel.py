"""Messages as lines, in by one descriptor and out by another, whatever these are: pipes, sockets, files, a terminal.

Threads move the bytes: asyncio takes no files, and an editor that does not read must not block the loop.
"""

import asyncio
import os
import threading
from concurrent.futures import CancelledError
from contextlib import suppress
from queue import SimpleQueue
from typing import Final

_READ_BYTES: Final = 64 * 1024
_AHEAD: Final = 64
"""Lines that are read ahead of whoever takes them; after that the editor waits."""


class LineTooLong:
    """Stands for a line that was longer than is taken."""


class LineSplitter:
    """Bytes to lines, without their ends; empty ones are left out. Pure."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes | LineTooLong]:
        """The lines that these bytes complete."""
        *whole, rest = data.split(b"\n")
        lines = [line for part in whole if (line := self._complete(part)) != b""]
        self._keep(rest)
        return lines

    def end(self) -> list[bytes | LineTooLong]:
        """The last line, where nothing ended it."""
        line = self._complete(b"")
        return [] if line == b"" else [line]

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._limit:
            self._parts.append(part)
        else:
            self._parts.clear()

    def _complete(self, part: bytes) -> bytes | LineTooLong:
        self._keep(part)
        too_long = self._size > self._limit
        line = b"".join(self._parts).strip()
        self._parts, self._size = [], 0
        return LineTooLong() if too_long else line


class LineChannel:
    """The channel to the editor. Both descriptors stay the caller's; they are used until the process ends."""

    def __init__(self, source: int, sink: int, limit: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._splitter = LineSplitter(limit)
        self._in: asyncio.Queue[bytes | LineTooLong | None] = asyncio.Queue(_AHEAD)
        self._out: SimpleQueue[tuple[bytes, asyncio.Future[None]]] = SimpleQueue()
        self._turn = asyncio.Lock()
        self.broken = asyncio.Event()
        """The editor takes no more."""
        for work, descriptor in ((self._read, source), (self._write, sink)):
            # Nobody waits for them at the end: they may be stuck in the editor's pipe.
            threading.Thread(target=work, args=(descriptor,), name=f"toold mcp {work.__name__}", daemon=True).start()

    async def read(self) -> bytes | LineTooLong | None:
        """The next line; None where there are no more."""
        return await self._in.get()

    async def write(self, message: bytes) -> None:
        """Write one line, whole, also where the caller is cancelled meanwhile.

        Raises:
            OSError: the editor takes no more.
        """
        async with self._turn:
            written = self._loop.create_future()
            self._out.put((message + b"\n", written))
            try:
                await written
            except OSError:
                self.broken.set()
                raise

    # --- in threads --------------------------------------------------------------------------------------------------

    def _read(self, source: int) -> None:
        with suppress(RuntimeError, CancelledError):  # the loop has ended
            while data := _bytes_of(source):
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
            failed: OSError | None = None
            rest = memoryview(message)
            try:
                while rest:
                    rest = rest[os.write(sink, rest) :]
            except OSError as error:
                failed = error
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(_settle, written, failed)


def _bytes_of(source: int) -> bytes:
    """What comes next; nothing at the end, and where it breaks."""
    try:
        return os.read(source, _READ_BYTES)
    except OSError:
        return b""


def _settle(written: asyncio.Future[None], failed: OSError | None) -> None:
    if written.done():
        return
    if failed is None:
        written.set_result(None)
    else:
        written.set_exception(failed)
