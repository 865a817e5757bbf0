"""One ``POST /tools/{name}`` in progress: the ``CallPort`` that converts the answer, and progress for a stream."""

import asyncio
from collections.abc import Sequence
from typing import Final

from ....protocol.error_codes import RequestIdConflictError
from ....protocol.rest.rest_answer import RestAnswer, answer_of, chunk_event, error_answer, progress_event
from ....protocol.tool_call import Progress, ToolResult
from ....serving import SLOW_READER_BYTES
from ...dispatch import DisconnectedPort, RunningCall

_ALIVE: Final = b": the call is still running\n\n"
"""An SSE comment, which clients ignore and which keeps proxies from closing the connection."""
_SUPERSEDED: Final = RequestIdConflictError("A later request with this Idempotency-Key gets the answer.")


class RestExchange(DisconnectedPort):
    """The pending parts of an answer: only the latest progress, and all waiting chunks as one."""

    def __init__(self, *, streams: bool) -> None:
        self.answer: RestAnswer | None = None
        """The answer, once the call has ended."""
        self.late = False
        """The call was running before this request joined it, so its text arrives with the answer."""
        self.disconnected = False
        """The client disconnected."""
        self.changed = asyncio.Event()
        """Set when one of the above changes, or an event arrives."""
        self._streams = streams
        self._progress: Progress | None = None
        self._chunks: list[str] = []
        self._alive = False
        self._rendered: RestAnswer | None = None
        # Set when the request is done; None unless a large answer waits for it.
        self._sent: asyncio.Event | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<RestExchange answered={self.answer is not None}>"

    @property
    def ended(self) -> bool:
        """Whether the request needs no more events."""
        return self.answer is not None or self.disconnected

    def events(self) -> bytes:
        """Returns and clears the events to send before the answer."""
        progress, chunks, alive = self._progress, self._chunks, self._alive
        self._progress, self._chunks, self._alive = None, [], False
        events = b"" if progress is None else progress_event(progress)
        if chunks:
            events += chunk_event("".join(chunks))
        return events or (_ALIVE if alive else b"")

    def set_disconnected(self, _: object = None) -> None:
        """Records that the client disconnected."""
        self.disconnected = True
        self.changed.set()

    def supersede(self) -> None:
        """A later request with the same key has taken over the call."""
        if self.answer is None:
            self._settle(error_answer(_SUPERSEDED.to_tool_error()))

    def settle(self, result: ToolResult) -> None:
        """Answers with the result of a call that did not run, or that ran earlier."""
        self._settle(answer_of(result))

    def close(self) -> None:
        """The request is done: the answer is sent, or no client waits for it."""
        self._closed = True
        if self._sent is not None:
            self._sent.set()

    # --- CallPort ----------------------------------------------------------------------------------------------------

    def render(self, _running: RunningCall, result: ToolResult) -> bytes:
        self._rendered = answer_of(result)
        return self._rendered.body

    async def deliver(self, _running: RunningCall, answer: bytes) -> None:
        if self._rendered is not None:
            self._settle(self._rendered)
        if len(answer) > SLOW_READER_BYTES and not self._closed:
            self._sent = asyncio.Event()
            await self._sent.wait()

    def progress(self, _running: RunningCall, progress: Progress) -> bool:
        if not self._streams:
            return False
        self._progress = progress
        self.changed.set()
        return True

    def chunk(self, _running: RunningCall, text: str) -> None:
        if self._streams and not self.late:
            self._chunks.append(text)
            self.changed.set()

    def heartbeat(self, calls: Sequence[RunningCall], now: float) -> None:
        if self._streams:
            for call in calls:  # there is exactly one
                self._progress = self._progress or call.heartbeat(now)
            self._alive = True
            self.changed.set()

    def _settle(self, answer: RestAnswer) -> None:
        if self.answer is None:
            self.answer = answer
        self.changed.set()
