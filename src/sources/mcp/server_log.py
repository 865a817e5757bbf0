"""What a server says beside its answers, for the daemon's log: its standard error, and MCP's log messages."""

import time
from collections.abc import Callable
from typing import Final

import structlog

from ..one_line import one_line

LINES: Final = 50
"""So many lines of a source are logged within ``WINDOW_S``; what is more is counted."""
WINDOW_S: Final = 10.0
LINE_CHARS: Final = 500

_log = structlog.get_logger("toold.sources.mcp")


class ServerLog:
    """One source's lines, bounded in number and in length; ``hide`` takes its secrets out of them."""

    def __init__(self, source: str, hide: Callable[[str], str], clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._hide = hide
        self._clock = clock
        self._began = clock()
        self._lines = 0

    def line(self, text: str) -> None:
        """Log it, or where there were too many, count it."""
        now = self._clock()
        if now - self._began >= WINDOW_S:
            if self._lines > LINES:
                _log.warning("a server says too much", source=self._source, lines_left_out=self._lines - LINES)
            self._began, self._lines = now, 0
        self._lines += 1
        if self._lines <= LINES:
            _log.info("a server says", source=self._source, said=one_line(self._hide(text), LINE_CHARS))
