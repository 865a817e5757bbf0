"""Who is being served, what was asked, and what the next requests are to meet."""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from ..model_catalog import ProviderName
from .directives import Directives

LOG_SIZE: Final = 200
"""How many requests are remembered."""

Operation = Literal["chat", "models", "files", "tokens", "search"]
"""What was asked for."""


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A request that came in with a right key."""

    vendor: ProviderName
    body: dict[str, Any]
    """The JSON object that was sent; empty where there was none."""
    headers: Mapping[str, str]
    """Lower-cased; without the authorization."""
    operation: Operation = "chat"


class RequestLog:
    """The requests seen, how many run at once, and the directives that tests laid out for the next ones."""

    def __init__(self) -> None:
        self.log: deque[LoggedRequest] = deque(maxlen=LOG_SIZE)
        self.running: Counter[str] = Counter()
        self.peaks: Counter[str] = Counter()
        self.closing = asyncio.Event()
        """Set when the simulator stops: hung requests end."""
        self._planned: dict[tuple[str, str], deque[Directives]] = {}
        self._changed = asyncio.Condition()

    def plan(self, vendor: ProviderName, operation: Operation, directives: Directives) -> None:
        """Have the next request of this kind obey these."""
        self._planned.setdefault((vendor, operation), deque()).append(directives)

    def planned(self, vendor: ProviderName, operation: Operation) -> Directives | None:
        """What was laid out for this request; it is then gone."""
        waiting = self._planned.get((vendor, operation))
        return waiting.popleft() if waiting else None

    @contextlib.asynccontextmanager
    async def serving(self, seen: LoggedRequest) -> AsyncIterator[None]:
        self.log.append(seen)
        self.running[seen.vendor] += 1
        self.peaks[seen.vendor] = max(self.peaks[seen.vendor], self.running[seen.vendor])
        await self._tell()
        try:
            yield
        finally:
            self.running[seen.vendor] -= 1
            await self._tell()

    async def until(self, vendor: ProviderName, count: int) -> None:
        """Wait until exactly ``count`` requests of this vendor run."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.running[vendor] == count)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()
