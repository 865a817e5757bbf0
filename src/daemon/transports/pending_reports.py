"""Everything that a WebSocket connection sends besides answers: progress, chunks, questions and notices."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from ...protocol.frames import Notification, QuestionClosed, QuestionFrame, ServerFrame, ToolsChanged
from ...protocol.tool_call import Progress
from ..dispatch import RunningCall
from .call_frames import chunk_frame, progress_frame

_CHUNK_CHARS: Final = 64 * 1024
"""The maximum characters in one chunk of a streamed answer. As JSON, they take up to six times as many bytes, which
fits into a frame."""


class PendingReports:
    """Reports of one connection that wait for their turn: at most one progress and one joined chunk per call. While the
    reader is behind, reports of one call are merged.
    """

    __slots__ = ("_chunks", "_progress", "_questions", "_send", "_sender", "_take_notice")

    def __init__(
        self,
        send: Callable[[ServerFrame], Awaitable[None]],
        take_notice: Callable[[], ToolsChanged | Notification | None],
    ) -> None:
        """``take_notice`` returns the next frame that belongs to no call, or None."""
        self._send = send
        self._take_notice = take_notice
        self._progress: dict[RunningCall, Progress] = {}
        self._chunks: dict[RunningCall, list[str]] = {}
        # Questions of running calls, and the notices that close them.
        self._questions: deque[QuestionFrame | QuestionClosed] = deque()
        self._sender: asyncio.Task[None] | None = None

    def close(self) -> None:
        """Sends nothing further."""
        if self._sender is not None:
            self._sender.cancel()

    def wake(self) -> None:
        """Sends the waiting reports, and the notices of ``take_notice``."""
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send_all())

    def progress(self, running: RunningCall, progress: Progress) -> None:
        """Sends a report; it replaces an unsent earlier one."""
        self._progress[running] = progress
        self.wake()

    def heartbeat(self, running: RunningCall, progress: Progress) -> None:
        """Sends a heartbeat, unless there is an unsent report."""
        self._progress.setdefault(running, progress)
        self.wake()

    def chunk(self, running: RunningCall, text: str) -> None:
        self._chunks.setdefault(running, []).append(text)
        self.wake()

    def question(self, frame: QuestionFrame | QuestionClosed) -> None:
        self._questions.append(frame)
        self.wake()

    def end(self, running: RunningCall) -> bool:
        """Drops the progress of a call that has its answer. Returns whether chunks have to be sent before the
        answer."""
        self._progress.pop(running, None)
        return running in self._chunks

    async def send_chunks(self, running: RunningCall) -> None:
        """Sends the text that a call has streamed since the last time, in frames of limited size."""
        text = "".join(self._chunks.pop(running))
        offset = running.streamed_chars - len(text)
        for start in range(0, len(text), _CHUNK_CHARS):
            await self._send(chunk_frame(running, text[start : start + _CHUNK_CHARS], offset + start))

    async def _send_all(self) -> None:
        while True:
            if self._questions:
                await self._send(self._questions.popleft())
            elif (notice := self._take_notice()) is not None:
                await self._send(notice)
            elif self._chunks:
                await self.send_chunks(next(iter(self._chunks)))
            elif self._progress:
                running = next(iter(self._progress))
                await self._send(progress_frame(running, self._progress.pop(running)))
            else:
                return
