"""The last log lines of each source, for the dashboard: the daemon's lines about it, and the lines of its server."""

import time
from collections import deque
from typing import Final, NamedTuple

from structlog.typing import EventDict, WrappedLogger

MAX_LINES: Final = 200
"""The maximum number of lines of one source; a new line replaces the oldest one."""
MAX_SOURCES: Final = 200
MAX_LINE_CHARS: Final = 1000
_NOT_SHOWN: Final = frozenset({"event", "level", "logger", "source", "timestamp", "exception"})


class SourceLine(NamedTuple):
    """One log line."""

    at: float
    """Unix time in seconds."""
    level: str
    text: str


_lines: dict[str, deque[SourceLine]] = {}


def keep_source_line(_: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """A processor of log lines, after those that remove secrets: keeps the lines about sources."""
    source = event.get("source")
    if isinstance(source, str):
        values = [f"{name}={value}" for name, value in event.items() if name not in _NOT_SHOWN and name[0] != "_"]
        text = " ".join([str(event.get("event", "")), *values])[:MAX_LINE_CHARS]
        if source not in _lines and len(_lines) >= MAX_SOURCES:
            del _lines[next(iter(_lines))]
        lines = _lines.setdefault(source, deque(maxlen=MAX_LINES))
        lines.append(SourceLine(time.time(), str(event.get("level", method)), text))
    return event


def source_lines(source: str) -> list[SourceLine]:
    """The last lines about a source, newest first."""
    return list(reversed(tuple(_lines.get(source, ()))))
