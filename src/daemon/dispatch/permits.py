"""Bounded counts of what runs. Held only through ``async with``; nothing else ever adjusts a count (decision 4)."""

import asyncio
from types import TracebackType
from typing import Self


class Permits:
    """So many at once, first come first served. ``async with permits:`` waits for one and gives it back."""

    __slots__ = ("_held", "_semaphore", "_waiting", "limit", "name")

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self.limit = limit
        self._semaphore = asyncio.Semaphore(limit)
        self._held = 0
        self._waiting = 0

    def __repr__(self) -> str:
        return f"<Permits {self.name} in_use={self._held}/{self.limit} waiting={self._waiting}>"

    @property
    def in_use(self) -> int:
        return self._held

    @property
    def waiting(self) -> int:
        return self._waiting

    @property
    def free(self) -> bool:
        """Whether the next comer would not wait."""
        return not self._semaphore.locked()

    async def __aenter__(self) -> Self:
        if self._semaphore.locked():
            self._waiting += 1
            try:
                await self._semaphore.acquire()
            finally:
                self._waiting -= 1
        else:
            await self._semaphore.acquire()
        self._held += 1
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._held -= 1
        self._semaphore.release()


class RunPermit:
    """One call's right to run: a permit of its session and one of the daemon, both or neither.

    ``async with permit:`` holds them; ``async with permit.paused():`` within gives them back while the call only
    waits for something else, and takes them again before it goes on. Where the pause ends by an exception (a
    cancelled wait, say) they are not taken again, and the outer ``async with`` finds nothing to give back.
    """

    __slots__ = ("_daemon", "_held", "_session")

    def __init__(self, session: Permits, daemon: Permits) -> None:
        # The session's comes first, so that one session never has more than its share in the daemon's queue.
        self._session = session
        self._daemon = daemon
        self._held = False

    @property
    def held(self) -> bool:
        return self._held

    async def __aenter__(self) -> Self:
        await self._take()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._give_back()

    def paused(self) -> "_Pause":
        return _Pause(self)

    async def _take(self) -> None:
        await self._session.__aenter__()
        try:
            await self._daemon.__aenter__()
        except BaseException:
            await self._session.__aexit__(None, None, None)
            raise
        self._held = True

    async def _give_back(self) -> None:
        if self._held:
            self._held = False
            await self._daemon.__aexit__(None, None, None)
            await self._session.__aexit__(None, None, None)


class _Pause:
    """The time in which a ``RunPermit`` is lent back."""

    __slots__ = ("_permit",)

    def __init__(self, permit: RunPermit) -> None:
        self._permit = permit

    async def __aenter__(self) -> None:
        await self._permit._give_back()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if exc_type is None:
            await self._permit._take()
