"""The simulator's log of requests, its concurrency counters, and the directives planned for later requests."""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from .directives import Directives

LOG_SIZE: Final = 200
"""The maximum number of requests in the log."""

Operation = Literal["chat", "embeddings", "models", "details", "files", "tokens", "search"]
"""The kind of request."""


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A request with a valid key."""

    vendor: str
    body: dict[str, Any]
    """The JSON object of the request; empty if the body has none."""
    headers: Mapping[str, str]
    """The headers by lower-case name, without the authorization."""
    operation: Operation = "chat"


class RequestLog:
    """Received requests, running requests per vendor, and directives that tests planned for later requests."""

    def __init__(self) -> None:
        self.log: deque[LoggedRequest] = deque(maxlen=LOG_SIZE)
        self.running: Counter[str] = Counter()
        self.peaks: Counter[str] = Counter()
        self.closing = asyncio.Event()
        """Set when the simulator stops, to end hanging requests."""
        self._planned: dict[tuple[str, str], deque[Directives]] = {}
        self._changed = asyncio.Condition()

    def plan(self, vendor: str, operation: Operation, directives: Directives) -> None:
        """Applies these directives to the next request of this kind."""
        self._planned.setdefault((vendor, operation), deque()).append(directives)

    def forget_plans(self) -> None:
        """Drops the directives that no request has used."""
        self._planned.clear()

    def planned(self, vendor: str, operation: Operation) -> Directives | None:
        """Removes and returns the directives planned for this request."""
        waiting = self._planned.get((vendor, operation))
        return waiting.popleft() if waiting else None

    @contextlib.asynccontextmanager
    async def serving(self, request: LoggedRequest) -> AsyncIterator[None]:
        self.log.append(request)
        self.running[request.vendor] += 1
        self.peaks[request.vendor] = max(self.peaks[request.vendor], self.running[request.vendor])
        await self._notify()
        try:
            yield
        finally:
            self.running[request.vendor] -= 1
            await self._notify()

    async def until(self, vendor: str, count: int) -> None:
        """Waits until exactly ``count`` requests of this vendor are running."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.running[vendor] == count)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()
