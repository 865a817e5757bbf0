"""Limits on unrequested output of a server: the rate of reading, and the number of logged lines."""

import time
from collections.abc import Callable
from typing import Final

import structlog

from ...protocol.terminal_text import one_line

CHUNKS_PER_S: Final = 1000.0
"""The rate at which standard error is read, in chunks of ``CHUNK_BYTES``."""
CHUNK_BYTES: Final = 4096

MAX_LOG_LINES: Final = 50
"""The maximum number of a source's lines that are logged per ``LOG_WINDOW_S``. Further lines are only counted."""
LOG_WINDOW_S: Final = 10.0
MAX_LOG_LINE_CHARS: Final = 500

_log = structlog.get_logger("toold.sources.mcp")


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
