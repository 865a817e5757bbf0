"""Notifications that wait for their client. Of equal notifications, a slow reader gets only the latest; old ones are
dropped."""

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Final

MAX_PENDING: Final = 200
"""The maximum number of notifications that wait for one client: one per resource to which it may subscribe, and as many
log messages."""

_LOG_MESSAGE: Final = "notifications/message"


class NotificationQueue:
    """The pending notifications of one client."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """``wake`` is called when a notification is added; it must not block."""
        self._wake = wake
        self._pending: dict[object, tuple[str, Mapping[str, Any]]] = {}
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._pending)

    def __repr__(self) -> str:
        return f"<NotificationQueue {len(self._pending)}>"

    def add(self, method: str, params: Mapping[str, Any]) -> None:
        """Adds a notification. Never blocks."""
        key: object = next(self._numbers) if method == _LOG_MESSAGE else (method, params.get("uri"))
        self._pending.pop(key, None)
        self._pending[key] = method, params
        if len(self._pending) > MAX_PENDING:
            del self._pending[next(iter(self._pending))]
        self._wake()

    def take(self) -> tuple[str, Mapping[str, Any]] | None:
        """Returns and removes the oldest notification; None if there is none."""
        return self._pending.pop(next(iter(self._pending))) if self._pending else None
