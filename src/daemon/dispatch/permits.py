"""Permits, which bound concurrency. They are held only through ``async with`` (decision 4)."""

import asyncio
from collections import deque
from contextlib import suppress
from types import TracebackType
from typing import Self


class Permits:
    """A counted limit, first come first served. ``async with permits:`` waits for a permit and releases it.

    A released permit goes to the first waiter directly, so the count never dips while one waits.
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
        """Whether a permit is available at once."""
        return self._held < self.limit

    def resize(self, limit: int) -> None:
        """Change the limit. A larger limit wakes waiters at once; a smaller one takes effect as permits are
        released.
        """
        self.limit = limit
        while self._held < self.limit and self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                self._held += 1
                waiter.set_result(None)

    async def __aenter__(self) -> Self:
        if not self._try_acquire():
            await self._wait()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._release()

    def _try_acquire(self) -> bool:
        if self._held >= self.limit:
            return False
        self._held += 1
        return True

    async def _wait(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                with suppress(ValueError):  # a release at the same moment has removed it
                    self._waiters.remove(waiter)
            else:  # it got the permit at the same moment
                self._release()
            raise

    def _release(self) -> None:
        while self._waiters and self._held <= self.limit:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._held -= 1


class RunPermit:
    """One call's right to run: a permit of its session and one of the daemon, both or neither.

    ``async with permit:`` holds them. Within it, ``async with permit.paused():`` releases them while the call waits
    for something else, and acquires them again afterwards. If the pause ends with an exception (a cancelled wait, for
    example) they are not acquired again, and the outer ``async with`` releases nothing. A call may pause in several
    tasks at once: the first one that continues acquires them again, unless the outer ``async with`` has ended.
    """

    __slots__ = ("_acquiring", "_daemon", "_ended", "_session", "held")

    def __init__(self, session: Permits, daemon: Permits) -> None:
        # The session's permit first, so that one session never takes more than its share of the daemon's queue.
        self._session = session
        self._daemon = daemon
        self._ended = False
        self._acquiring = False
        self.held = False

    async def __aenter__(self) -> Self:
        await self._acquire()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended = True
        self._release_both()

    def paused(self) -> "_Pause":
        return _Pause(self)

    async def _acquire(self) -> None:
        if not self._session._try_acquire():
            await self._session._wait()
        if not self._daemon._try_acquire():
            try:
                await self._daemon._wait()
            except BaseException:
                self._session._release()
                raise
        self.held = True

    async def _reacquire(self) -> None:
        if self._ended or self.held or self._acquiring:
            return
        self._acquiring = True
        try:
            await self._acquire()
        finally:
            self._acquiring = False
        self._release_if_ended()

    def _release_if_ended(self) -> None:
        """The call may have ended while one of its tasks waited."""
        if self._ended:
            self._release_both()

    def _release_both(self) -> None:
        if self.held:
            self.held = False
            self._daemon._release()
            self._session._release()


class _Pause:
    """The block in which a ``RunPermit`` is released."""

    __slots__ = ("_permit",)

    def __init__(self, permit: RunPermit) -> None:
        self._permit = permit

    async def __aenter__(self) -> None:
        self._permit._release_both()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if exc_type is None:
            await self._permit._reacquire()
