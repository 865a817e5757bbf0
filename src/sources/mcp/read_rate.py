"""How fast a server is read that says more than it is asked. Pure."""

import time
from collections.abc import Callable
from typing import Final

MESSAGES_PER_S: Final = 1000.0
"""A message costs the daemon some 0.1 ms, and every call waits for its turn behind it."""
PIECES_PER_S: Final = 1000.0
"""Of standard error, which is read in pieces of ``PIECE_BYTES``."""
PIECE_BYTES: Final = 4096
_AT_ONCE_S: Final = 2.0


class ReadRate:
    """So many a second over time, and what two seconds bring at once after a pause. What is past that waits in the
    server's own pipe. An answer to a request is paid for by the request.
    """

    def __init__(self, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._clock = clock
        self._left = self._most = per_s * _AT_ONCE_S
        self._at = clock()

    def earn(self) -> None:
        """A request was sent."""
        self._left = min(self._left + 1, self._most)

    def take(self, number: int = 1) -> float:
        """Count what was read; returns the seconds to wait before more is."""
        now = self._clock()
        self._left = min(self._left + (now - self._at) * self._per_s, self._most) - number
        self._at = now
        return max(0.0, -self._left / self._per_s)
