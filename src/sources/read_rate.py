"""Limits how fast messages of a server or an agent are read."""

import time
from collections.abc import Callable
from typing import Final

MESSAGES_PER_S: Final = 1000.0
"""The rate of messages. A message costs the daemon about 0.1 ms, during which every call waits."""
_BURST_S: Final = 2.0
_BYTES_PER_MESSAGE: Final = 32 * 1024
_VALUES_PER_MESSAGE: Final = 500
"""The number of bytes or values that cost as much as one more message."""


def message_cost(data: bytes, messages: int = 1) -> int:
    """The tokens for reading these bytes, which contain ``messages`` messages or a part of one. Long messages and
    messages with many values cost more; otherwise a server that sends them without a pause would take all of the
    daemon's time.
    """
    return messages + len(data) // _BYTES_PER_MESSAGE + data.count(b",") // _VALUES_PER_MESSAGE


class ReadRate:
    """A token bucket for reading, by default with a burst of two seconds.

    Excess data waits in the server's pipe. Each request adds a token for its answer.
    """

    def __init__(
        self, per_s: float, clock: Callable[[], float] = time.monotonic, *, burst: float | None = None
    ) -> None:
        self._per_s = per_s
        self._clock = clock
        self._tokens = self._burst = per_s * _BURST_S if burst is None else burst
        self._updated = clock()

    def add_request(self) -> None:
        """Adds a token for a request that was sent."""
        self._tokens = min(self._tokens + 1, self._burst)

    def consume(self, number: int = 1) -> float:
        """Consumes tokens for data that was read; returns the seconds to wait before the next read."""
        now = self._clock()
        self._tokens = min(self._tokens + (now - self._updated) * self._per_s, self._burst) - number
        self._updated = now
        return max(0.0, -self._tokens / self._per_s)
