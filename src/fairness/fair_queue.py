"""The order in which waiting calls get permits. Pure.

The principal that holds the fewest permits is served first; principals with equal numbers take turns. The sessions of a
principal take turns; the items of a session are served in the order of their arrival.
"""

from collections import deque
from collections.abc import Mapping
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Waiting items, each of a session of a principal.

    Finding the next item takes one step per waiting principal; everything else takes constant time.
    """

    __slots__ = ("_principals", "size")

    def __init__(self) -> None:
        # The principals, and the sessions of each, in the order of their turns. None is empty.
        self._principals: dict[str, dict[str, deque[T]]] = {}
        self.size = 0
        """The number of waiting items. An attribute rather than ``len``, because it is read for every call."""

    def push(self, principal: str, session: str, item: T) -> None:
        """Add an item behind all others of its session."""
        self._principals.setdefault(principal, {}).setdefault(session, deque()).append(item)
        self.size += 1

    def pop(self, held: Mapping[str, int], *, newcomers_only: bool) -> tuple[str, T] | None:
        """Remove the next item and return it with its principal; None if no item may be served.

        ``held`` is the number of permits of each principal that holds any. ``newcomers_only``: only principals that
        hold none are served.
        """
        principal = min(self._principals, key=lambda name: held.get(name, 0), default=None)
        if principal is None or (newcomers_only and principal in held):
            return None
        sessions = self._principals.pop(principal)
        session, waiting = next(iter(sessions.items()))
        item = waiting.popleft()
        del sessions[session]
        if waiting:
            sessions[session] = waiting
        if sessions:
            self._principals[principal] = sessions
        self.size -= 1
        return principal, item

    def discard(self, principal: str, session: str, item: T) -> None:
        """Remove an item if it still waits."""
        sessions = self._principals.get(principal, {})
        waiting = sessions.get(session)
        if waiting is None or item not in waiting:
            return
        waiting.remove(item)
        self.size -= 1
        if not waiting:
            del sessions[session]
        if not sessions:
            del self._principals[principal]
