"""Bounded counts of what runs. Held only through ``async with``; nothing else ever adjusts a count (decision 4)."""

import asyncio
from collections import deque
from contextlib import suppress
from types import TracebackType
from typing import Self


class Permits:
    """So many at once, first come first served. ``async with permits:`` waits for one and gives it back.

    Where somebody waits, a permit that is given back is handed over to the first in line, so the count never dips.
    """

    __slots__ = ("_held", "_waiters", "limit", "name")

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self.limit = limit
        self._held = 0
        self._waiters: deque[asyncio.Future[None]] = deque()

    def __repr__(self) -> str:
        return f"<Permits {self.name} in_use={self._held}/{self.limit} waiting={len(self._waiters)}>"

    @property
    def in_use(self) -> int:
        return self._held

    @property
    def waiting(self) -> int:
        return len(self._waiters)

    @property
    def free(self) -> bool:
        """Whether the next comer would not wait."""
        return self._held < self.limit

    def resize(self, limit: int) -> None:
        """Change the bound. A larger one lets the first in line go on; under a smaller one nobody loses its permit,
        and nobody new gets one until enough have come back.
        """
        self.limit = limit
        while self._held < self.limit and self._waiters:
            turn = self._waiters.popleft()
            if not turn.done():
                self._held += 1
                turn.set_result(None)

    async def __aenter__(self) -> Self:
        if not self._take_now():
            await self._wait()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._give_back()

    def _take_now(self) -> bool:
        if self._held >= self.limit:
            return False
        self._held += 1
        return True

    async def _wait(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiters.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with suppress(ValueError):  # who gave a permit back in this moment has passed it over
                    self._waiters.remove(turn)
            else:  # it was handed over in the same moment
                self._give_back()
            raise

    def _give_back(self) -> None:
        while self._waiters and self._held <= self.limit:
            turn = self._waiters.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._held -= 1


class RunPermit:
    """One call's right to run: a permit of its session and one of the daemon, both or neither.

    ``async with permit:`` holds them; ``async with permit.paused():`` within gives them back while the call only
    waits for something else, and takes them again before it goes on. Where the pause ends by an exception (a
    cancelled wait, say) they are not taken again, and the outer ``async with`` finds nothing to give back. A call may
    pause in several tasks of its own at once: whichever goes on first takes them again, and after the outer
    ``async with`` nobody does.
    """

    __slots__ = ("_daemon", "_over", "_session", "_taking", "held")

    def __init__(self, session: Permits, daemon: Permits) -> None:
        # The session's comes first, so that one session never has more than its share in the daemon's queue.
        self._session = session
        self._daemon = daemon
        self._over = False
        self._taking = False
        self.held = False

    async def __aenter__(self) -> Self:
        await self._take()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over = True
        self._lend()

    def paused(self) -> "_Pause":
        return _Pause(self)

    async def _take(self) -> None:
        if not self._session._take_now():
            await self._session._wait()
        if not self._daemon._take_now():
            try:
                await self._daemon._wait()
            except BaseException:
                self._session._give_back()
                raise
        self.held = True

    async def _take_again(self) -> None:
        if self._over or self.held or self._taking:
            return
        self._taking = True
        try:
            await self._take()
        finally:
            self._taking = False
        self._settle()

    def _settle(self) -> None:
        """The call may have ended while a task of its own stood in line."""
        if self._over:
            self._lend()

    def _lend(self) -> None:
        if self.held:
            self.held = False
            self._daemon._give_back()
            self._session._give_back()


class _Pause:
    """The time in which a ``RunPermit`` is lent back."""

    __slots__ = ("_permit",)

    def __init__(self, permit: RunPermit) -> None:
        self._permit = permit

    async def __aenter__(self) -> None:
        self._permit._lend()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if exc_type is None:
            await self._permit._take_again()
