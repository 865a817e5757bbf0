"""The session's book of calls: which run, which are done, and what it means when the same request id comes again.

A state machine without I/O and without a clock. A call goes ``accepted → done``; ids of done calls are remembered so
that ``cancel`` can tell a call that ended from one that never was. Resuming, replay and the journal hook in here.
"""

from collections import OrderedDict
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec

from .calls import CallStatus

MAX_ACCEPTED: Final = 32
"""Accepted calls (running and waiting) that one session may have (docs/protocol.md)."""
REMEMBERED_IDS: Final = 4096
"""Ids of ended calls that a session remembers, so that a long session does not grow."""

_canonical = msgspec.json.Encoder(order="deterministic").encode


class Verdict(Enum):
    """What ``SessionCalls.accept`` says of a call."""

    NEW = "new"
    """It is in the book now and is to be run, once."""
    SAME = "same"
    """It runs already; the sender gets that call's one answer."""
    CONFLICT = "conflict"
    """The id belongs to a running call with other content."""
    FULL = "full"
    """The session has as many accepted calls as it may."""


class _Content(NamedTuple):
    """What makes two calls the same: the tool after aliases, and the arguments as canonical JSON."""

    name: str
    arguments: dict[str, Any]

    def same_as(self, name: str, arguments: dict[str, Any]) -> bool:
        return self.name == name and _canonical(self.arguments) == _canonical(arguments)


class SessionCalls:
    """The calls of one session, by request key (``decoding.request_key``)."""

    __slots__ = ("_done", "_max_accepted", "_running")

    def __init__(self, max_accepted: int = MAX_ACCEPTED) -> None:
        self._max_accepted = max_accepted
        # Calls that are accepted and whose answer is not sent yet.
        self._running: dict[str, _Content] = {}
        # Ids of calls whose answer was sent, oldest first.
        self._done: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._running)

    def __repr__(self) -> str:
        return f"<SessionCalls running={len(self._running)}/{self._max_accepted} done={len(self._done)}>"

    def accept(self, key: str, name: str, arguments: dict[str, Any]) -> Verdict:
        """Judge a call and, where it is new, enter it."""
        known = self._running.get(key)
        if known is not None:
            return Verdict.SAME if known.same_as(name, arguments) else Verdict.CONFLICT
        if len(self._running) >= self._max_accepted:
            return Verdict.FULL
        self._running[key] = _Content(name, arguments)
        return Verdict.NEW

    def finish(self, key: str) -> bool:
        """The call's one answer is out. False where it had one already, or never was."""
        if self._running.pop(key, None) is None:
            return False
        self._done[key] = None
        self._done.move_to_end(key)
        if len(self._done) > REMEMBERED_IDS:
            self._done.popitem(last=False)
        return True

    def forget(self, key: str) -> None:
        """The call was entered and is not to run after all: as if it had never come."""
        self._running.pop(key, None)

    def status(self, key: str) -> CallStatus:
        """What is known of an id."""
        if key in self._running:
            return "running"
        return "done" if key in self._done else "unknown"
