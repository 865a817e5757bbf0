"""The data about ended calls on the dashboard's live page: the newest calls, and rates and latencies by second.

It counts only while a page is open, and on the event loop's thread. The caller reads earlier calls once.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from ...protocol.tool_call import ToolCall, ToolResult
from ..dispatch import Session

SHOWN_ENDED: Final = 20
"""The number of the newest ended calls that are kept for a viewer."""
KEPT_SECONDS: Final = 300
"""The number of seconds that the charts show."""


@dataclass(frozen=True, slots=True)
class ActivitySecond:
    """The calls that ended in one second."""

    at: int
    """Unix time."""
    calls: int
    errors: int
    p50_ms: float | None
    """None if no call ended."""
    p99_ms: float | None


@dataclass(slots=True)
class _Watched:
    """The data for the watchers of one viewer."""

    watchers: int = 0
    ended: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=SHOWN_ENDED))
    seconds: deque[ActivitySecond] = field(default_factory=lambda: deque(maxlen=KEPT_SECONDS))
    latencies: list[float] = field(default_factory=list)
    errors: int = 0


class LiveActivity:
    """The activity by viewer: the name of a principal, or None for an operator, who sees all."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.watched: dict[str | None, _Watched] = {}
        """If it is empty, calls need not be counted."""

    def watch(self, viewer: str | None) -> None:
        """Count for one more watcher; ``leave`` ends it."""
        self.watched.setdefault(viewer, _Watched()).watchers += 1

    def leave(self, viewer: str | None) -> None:
        watched = self.watched[viewer]
        watched.watchers -= 1
        if not watched.watchers:
            del self.watched[viewer]

    def add_earlier(self, viewer: str | None, calls: Iterable[dict[str, Any]]) -> None:
        """Add calls that ended before the viewer was watched, newest first, with the fields of ``ended_calls``."""
        watched = self.watched[viewer]
        known = {call["id"] for call in watched.ended}
        earlier = [call for call in calls if call["id"] not in known]
        watched.ended = deque([*reversed(earlier), *watched.ended], maxlen=SHOWN_ENDED)

    def ended_calls(self, viewer: str | None) -> list[dict[str, Any]]:
        """The calls that ended last, newest first: calls of clients, and failed child calls."""
        return list(reversed(self.watched[viewer].ended))

    def seconds(self, viewer: str | None) -> list[ActivitySecond]:
        """The seconds that are complete, oldest first."""
        return list(self.watched[viewer].seconds)

    def call_ended(
        self, session: Session, call: ToolCall, result: ToolResult, call_id: str, message: str | None
    ) -> None:
        """Count an ended or refused call. ``message`` is its error message, as the audit records it."""
        name = session.principal.name
        for viewer in (None, name):
            watched = self.watched.get(viewer)
            if watched is None:
                continue
            latency_ms = result.metadata.latency_ms
            watched.latencies.append(latency_ms)
            watched.errors += result.error is not None
            if not is_shown(call_id, result.outcome):
                continue
            watched.ended.append(
                {
                    "id": call_id,
                    "tool": call.name,
                    "outcome": result.outcome,
                    "message": message,
                    "session": session.label,
                    "principal": name,
                    "latency_ms": latency_ms,
                    "ended_at": self._clock(),
                }
            )

    def end_second(self) -> None:
        """Complete the current second for each viewer."""
        at = int(self._clock())
        for watched in self.watched.values():
            latencies = sorted(watched.latencies)
            watched.seconds.append(
                ActivitySecond(
                    at, len(latencies), watched.errors, _quantile(latencies, 0.5), _quantile(latencies, 0.99)
                )
            )
            watched.latencies.clear()
            watched.errors = 0


def is_shown(call_id: str, outcome: str) -> bool:
    """Whether the list of ended calls includes a call; successful child calls would fill the list."""
    return "/" not in call_id or outcome != "ok"


def _quantile(ordered: list[float], share: float) -> float | None:
    """The nearest-rank quantile."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
