"""Limits on what a server sends without being asked: how fast it is read, and how much of it is logged."""

import time
from collections.abc import Callable
from typing import Final

import structlog

from ...protocol.terminal_text import one_line

MESSAGES_PER_S: Final = 1000.0
"""A message costs the daemon about 0.1 ms, during which every call waits."""
CHUNKS_PER_S: Final = 1000.0
"""For standard error, which is read in chunks of ``CHUNK_BYTES``."""
CHUNK_BYTES: Final = 4096
_BURST_S: Final = 2.0

MAX_LOG_LINES: Final = 50
"""Lines of one source that are logged per ``LOG_WINDOW_S``; further lines are only counted."""
LOG_WINDOW_S: Final = 10.0
MAX_LOG_LINE_CHARS: Final = 500

_log = structlog.get_logger("toold.sources.mcp")


class ReadRate:
    """A token bucket for reading, with a burst of two seconds' worth.

    Excess data waits in the server's pipe. Each request adds a token, which pays for its answer.
    """

    def __init__(self, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._clock = clock
        self._tokens = self._burst = per_s * _BURST_S
        self._updated = clock()

    def add_request(self) -> None:
        """Adds the token of a request that was sent."""
        self._tokens = min(self._tokens + 1, self._burst)

    def consume(self, number: int = 1) -> float:
        """Counts what was read; returns the seconds to wait before the next read."""
        now = self._clock()
        self._tokens = min(self._tokens + (now - self._updated) * self._per_s, self._burst) - number
        self._updated = now
        return max(0.0, -self._tokens / self._per_s)


class ServerLog:
    """Writes one source's standard error and MCP log messages to the daemon's log, limited in number and length.

    ``redact`` removes the source's secrets.
    """

    def __init__(self, source: str, redact: Callable[[str], str], clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._redact = redact
        self._clock = clock
        self._window_start = clock()
        self._lines = 0

    def write(self, text: str) -> None:
        """Logs a line, or counts it if the limit is exceeded."""
        now = self._clock()
        if now - self._window_start >= LOG_WINDOW_S:
            if self._lines > MAX_LOG_LINES:
                dropped = self._lines - MAX_LOG_LINES
                _log.warning("server log rate limit exceeded", source=self._source, dropped_lines=dropped)
            self._window_start, self._lines = now, 0
        self._lines += 1
        if self._lines <= MAX_LOG_LINES:
            _log.info("server log", source=self._source, line=one_line(self._redact(text), MAX_LOG_LINE_CHARS))
