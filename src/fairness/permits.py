"""Permits, which bound concurrency. They are held only through ``async with`` (decision 4)."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

from .fair_queue import FairQueue


class Permits:
    """A counted limit, shared fairly between principals and their sessions (``FairQueue``).

    ``async with permits.of(principal, session):`` waits for a permit and releases it; ``async with permits:`` does so
    for the daemon itself. A released permit goes directly to the next waiter, so that newcomers cannot overtake it.

    With ``keep_reserve``, the last permit goes only to principals that hold none, so that one principal's hanging calls
    never keep all others waiting. A limit of 1 has no reserve. With ``one_principal``, all callers belong to the same
    principal, so permits are not counted per principal.
    """

    __slots__ = ("_held", "_held_by", "_queue", "_shared_limit", "keeps_reserve", "limit", "name", "on_wait")

    def __init__(self, name: str, limit: int, *, one_principal: bool = False) -> None:
        self.name = name
        self.limit = limit
        self._held = 0
        # The number of permits of each principal that holds any; None if they are not counted.
        self._held_by: dict[str, int] | None = None if one_principal else {}
        self.keeps_reserve = False
        # This many permits may go to any principal; the rest are the reserve.
        self._shared_limit = limit
        self._queue: FairQueue[asyncio.Future[None]] = FairQueue()
        self.on_wait: Callable[[], None] | None = None
        """Called when a caller has to wait."""

    def __repr__(self) -> str:
        return f"<Permits {self.name} in_use={self._held}/{self.limit} waiting={self._queue.size}>"

    @property
    def in_use(self) -> int:
        return self._held

    @property
    def waiting(self) -> int:
        return self._queue.size

    @property
    def reserved(self) -> int:
        """The number of free permits that go only to principals that hold none."""
        return self.limit - self._shared_limit

    def free(self, principal: str) -> bool:
        """Whether a permit is available to this principal at once."""
        if self._held < self._shared_limit:
            return True
        return self._held < self.limit and self._held_by is not None and principal not in self._held_by

    def resize(self, limit: int) -> None:
        """Change the limit. A larger limit wakes waiters at once. A smaller limit takes effect when permits are
        released.
        """
        self.limit = limit
        self._shared_limit = limit - 1 if self.keeps_reserve and limit > 1 else limit
        self._serve()

    def keep_reserve(self, keeps: bool) -> None:
        """Set whether there is a reserve. It makes sense only with several principals."""
        self.keeps_reserve = keeps
        self.resize(self.limit)

    def of(self, principal: str, session: str) -> "PermitOf":
        """The permit of one call, to be acquired with ``async with``."""
        return PermitOf(self, principal, session)

    async def __aenter__(self) -> Self:
        await self._acquire("", "")
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._release("")

    async def _acquire(self, principal: str, session: str) -> None:
        if not self._try_acquire(principal):
            await self._wait(principal, session)

    def _try_acquire(self, principal: str) -> bool:
        # A waiting call that could use this permit would already have got it, so this overtakes none.
        if self._held >= self._shared_limit and not self.free(principal):
            return False
        self._held += 1
        held_by = self._held_by
        if held_by is not None:
            held_by[principal] = held_by.get(principal, 0) + 1
        return True

    async def _wait(self, principal: str, session: str) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._queue.push(principal, session, waiter)
        if self.on_wait is not None:
            self.on_wait()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                self._queue.discard(principal, session, waiter)
            else:  # the waiter got the permit at the same moment
                self._release(principal)
            raise

    def _release(self, principal: str) -> None:
        self._held -= 1
        held_by = self._held_by
        if held_by is not None:
            left = held_by[principal] - 1
            if left:
                held_by[principal] = left
            else:
                del held_by[principal]
        if self._queue.size:
            self._serve()

    def _serve(self) -> None:
        """Give free permits to the next waiters."""
        while self._held < self.limit:
            served = self._queue.pop(self._held_by or {}, newcomers_only=self._held >= self._shared_limit)
            if served is None:
                return
            principal, waiter = served
            if not waiter.done():  # otherwise it was cancelled at the same moment
                self._try_acquire(principal)
                waiter.set_result(None)


class PermitOf:
    """One permit for a call's principal and session, acquired with ``async with``."""

    __slots__ = ("_permits", "_principal", "_session")

    def __init__(self, permits: Permits, principal: str, session: str) -> None:
        self._permits = permits
        self._principal = principal
        self._session = session

    async def __aenter__(self) -> None:
        await self._permits._acquire(self._principal, self._session)

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._permits._release(self._principal)


class RunPermit:
    """One call's right to run: either both a permit of its session and a permit of the daemon, or neither.

    ``async with permit:`` holds both permits. Within it, ``async with permit.paused():`` releases them while the call
    waits for something else, and acquires them again afterwards. If the pause ends with an exception (such as a
    cancelled wait), they are not acquired again, and the outer ``async with`` releases nothing. A call may pause in
    several tasks at once: the first task that continues acquires the permits again, unless the outer ``async with`` has
    ended. A pause of a call without permits does nothing, because acquired permits would never be released.
    """

    __slots__ = ("_acquiring", "_daemon", "_entered", "_session", "held", "principal", "session_id")

    def __init__(self, session: Permits, daemon: Permits, principal: str = "", session_id: str = "") -> None:
        # The session's permit first, so that one session never takes more than its share of the daemon's queue.
        self._session = session
        self._daemon = daemon
        self._entered = False
        self._acquiring = False
        self.principal = principal
        self.session_id = session_id
        self.held = False

    def enter_at_once(self) -> bool:
        """Take both permits if they are free. If it returns True, ``leave`` must follow: this is ``async with``
        without its coroutines.
        """
        if not self._session._try_acquire(self.principal):
            return False
        if not self._daemon._try_acquire(self.principal):
            self._session._release(self.principal)
            return False
        self.held = self._entered = True
        return True

    async def enter(self) -> None:
        """Wait for both permits. Unless it raises, ``leave`` must follow."""
        await self._acquire()
        self._entered = True

    def leave(self) -> None:
        """Release the permits, if they are held."""
        self._entered = False
        self._release_both()

    async def __aenter__(self) -> Self:
        await self.enter()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.leave()

    def paused(self) -> "_Pause":
        return _Pause(self)

    async def _acquire(self) -> None:
        if not self._session._try_acquire(self.principal):
            await self._session._wait(self.principal, self.session_id)
        if not self._daemon._try_acquire(self.principal):
            try:
                await self._daemon._wait(self.principal, self.session_id)
            except BaseException:
                self._session._release(self.principal)
                raise
        self.held = True

    async def _reacquire(self) -> None:
        if not self._entered or self.held or self._acquiring:
            return
        self._acquiring = True
        try:
            await self._acquire()
        finally:
            self._acquiring = False
        self._release_if_ended()

    def _release_if_ended(self) -> None:
        """Release the permits if the call ended while one of its tasks waited."""
        if not self._entered:
            self._release_both()

    def _release_both(self) -> None:
        if self.held:
            self.held = False
            self._daemon._release(self.principal)
            self._session._release(self.principal)


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
