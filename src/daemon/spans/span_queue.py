"""The bounded queue from the event loop, which records ended calls and requests, to the thread that sends them."""

import threading
from collections import deque
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from .span_projection import Ended

BATCH: Final = 512
"""The maximum number of spans in a request: the default of OTEL_BSP_MAX_EXPORT_BATCH_SIZE."""

BATCH_CHARS: Final = 2 * 1024**2
"""A request gets no further span once its spans have this much content. Many collectors limit requests to 4 MiB, the
default message limit of gRPC."""


class SpanQueue:
    """One thread adds spans, another one takes them; neither waits for the other. Beyond a limit, new spans are
    dropped."""

    def __init__(self, *, max_spans: int, max_chars: int, batch: int = BATCH) -> None:
        """``batch`` waiting spans wake the thread that takes spans."""
        self._max_spans = max_spans
        self._max_chars = max_chars
        self._batch = batch
        self._waiting: deque[Ended] = deque()
        self._filled = threading.Event()
        # Only one thread writes each number, so no lock is needed.
        self._chars_added = 0
        self._chars_taken = 0
        self.dropped = 0
        """The number of spans for which there was no space."""
        self.stripped = 0
        """The number of spans that were sent without their content, for which there was no space."""

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, ended: Ended) -> None:
        """Adds an ended call or request. Never blocks."""
        waiting = len(self._waiting)
        if waiting >= self._max_spans:
            self.dropped += 1
            return
        content = ended.content
        if content is None or self._chars_added - self._chars_taken + content.chars <= self._max_chars:
            self._chars_added += 0 if content is None else content.chars
            self._waiting.append(ended)
        else:
            self.stripped += 1
            self._waiting.append(replace(ended, content=None))
        if waiting + 1 == self._batch:
            self._filled.set()

    def wake(self) -> None:
        """Ends the wait of ``take``."""
        self._filled.set()

    def take(self, timeout_s: float) -> Sequence[Ended]:
        """Takes the oldest spans, at most a batch. Waits up to ``timeout_s`` for a whole batch."""
        if len(self._waiting) < self._batch:
            self._filled.wait(timeout_s)
        self._filled.clear()
        taken: list[Ended] = []
        chars = 0
        while self._waiting and len(taken) < self._batch and chars < BATCH_CHARS:
            ended = self._waiting.popleft()
            taken.append(ended)
            if ended.content is not None:
                chars += ended.content.chars
        self._chars_taken += chars
        return taken
