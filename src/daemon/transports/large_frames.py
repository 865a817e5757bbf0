"""Which connections may receive a large frame at the same time. Pure: callers pass the time.

Most of a large frame is in memory before the daemon can read any of it. So a connection with a large frame needs a
turn, which counts as the largest possible frame. Without a turn, the connection receives no further data, which stays
in the client's system.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

LARGE_BYTES: Final = 64 * 1024
"""Smaller frames need no turn."""


class Receiver(Protocol):
    """A connection that receives a large frame."""

    def go_on(self) -> None:
        """Reports that it has a turn."""
        ...


class TurnLimits(NamedTuple):
    """The number of turns at the same time."""

    principal: int
    total: int


class LargeFrames:
    """The turns of all connections, first come first served within the limits."""

    def __init__(self, limits: Callable[[], TurnLimits]) -> None:
        self._limits = limits
        # The principal of each receiver, the oldest first, and when its turn began.
        self._turns: dict[Receiver, tuple[str, float]] = {}
        self._waiting: dict[Receiver, str] = {}
        self._by_principal: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"<LargeFrames turns={len(self._turns)} waiting={len(self._waiting)}>"

    def request(self, receiver: Receiver, principal: str, now: float) -> bool:
        """Gives a receiver a turn. Otherwise returns False; ``go_on`` is called later."""
        if self._is_free(principal):
            self._begin(receiver, principal, now)
            return True
        self._waiting[receiver] = principal
        return False

    def release(self, receiver: Receiver, now: float) -> None:
        """Ends a receiver's turn, or its wait, and gives the turn to the next ones."""
        self._waiting.pop(receiver, None)
        turn = self._turns.pop(receiver, None)
        if turn is None:
            return
        self._by_principal[turn[0]] -= 1
        if not self._by_principal[turn[0]]:
            del self._by_principal[turn[0]]
        own, total = self._limits()
        for waiting, principal in tuple(self._waiting.items()):
            if len(self._turns) >= max(1, total):
                break
            if self._by_principal[principal] < max(1, own):
                del self._waiting[waiting]
                self._begin(waiting, principal, now)
                waiting.go_on()

    def overdue(self, now: float, limit_s: float) -> Receiver | None:
        """The receiver that must give its turn to a waiting one: the oldest receiver of the principal with the most
        turns, if its turn took longer than ``limit_s`` seconds.
        """
        if not self._waiting:
            return None
        full = len(self._turns) >= self._total
        crowded = self._by_principal.most_common(1)[0][0] if full else next(iter(self._waiting.values()))
        for receiver, (principal, began) in self._turns.items():
            if principal == crowded:
                return receiver if now - began > limit_s else None
        return None

    def _is_free(self, principal: str) -> bool:
        return len(self._turns) < self._total and self._by_principal[principal] < max(1, self._limits().principal)

    @property
    def _total(self) -> int:
        return max(1, self._limits().total)

    def _begin(self, receiver: Receiver, principal: str, now: float) -> None:
        self._turns[receiver] = (principal, now)
        self._by_principal[principal] += 1
