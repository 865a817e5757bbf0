"""Bytes that the daemon holds for its clients: unread answers, requests in flight. Bounded per session, per principal
and in total.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from .running_call import Session

UNCOUNTED_BYTES: Final = 4096
"""Smaller requests and answers are not counted, because counting takes time in every call. Their number is limited
anyway: a session has at most ``max_accepted_per_session`` calls.
"""


class ByteLimits(NamedTuple):
    """The limits of one kind of bytes."""

    session: int
    principal: int
    daemon: int


class HeldBytes:
    """Counts one kind of bytes. A session, a principal or the daemon may exceed its limit by one request or answer, if
    it holds nothing else."""

    def __init__(self, limits: Callable[[], ByteLimits]) -> None:
        self._limits = limits
        self.total = 0
        self._by_session: dict[str, int] = {}
        self._by_principal: dict[str, int] = {}
        self._waiting: list[asyncio.Future[None]] = []

    def __repr__(self) -> str:
        return f"<HeldBytes {self.total}/{self._limits().daemon}>"

    def exceeded(self, session: Session, size: int) -> str | None:
        """The owner of the limit that ``size`` more bytes would exceed, as a text for the error; None if they fit."""
        limits = self._limits()
        levels = (
            ("this session", self._by_session.get(session.id, 0), limits.session),
            ("this principal", self._by_principal.get(session.principal.name, 0), limits.principal),
            ("the daemon", self.total, limits.daemon),
        )
        for owner, held, limit in levels:
            if held and held + size > limit:
                return f"{owner} ({limit:,} bytes)"
        return None

    def add(self, session: Session, size: int) -> None:
        self._count(session, size)

    def remove(self, session: Session, size: int) -> None:
        self._count(session, -size)
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def wait_until_fits(self, session: Session, size: int) -> None:
        """Waits until ``size`` more bytes fit."""
        while self.exceeded(session, size) is not None:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter

    @contextmanager
    def holding(self, session: Session, size: int) -> Iterator[None]:
        """Counts ``size`` bytes for the duration of the context."""
        self._count(session, size)
        try:
            yield
        finally:
            self.remove(session, size)

    def _count(self, session: Session, size: int) -> None:
        self.total += size
        for counts, key in ((self._by_session, session.id), (self._by_principal, session.principal.name)):
            held = counts.get(key, 0) + size
            if held:
                counts[key] = held
            else:
                del counts[key]
