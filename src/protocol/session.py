"""The session's book of calls: which run, which are done, and what it means when the same request id comes again.

A state machine without I/O; the clock is handed in. A call goes ``running → done``, and done ones are remembered with
what they were, so that a repeat is answered with the same result and another call under the same id is refused. A
local call (read-only and closed-world) whose result is gone is forgotten altogether, since it may safely run again;
any other is remembered as expired. Resuming and the journal hook in here.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from enum import Enum
from typing import Any, Final

import msgspec

from .calls import CallStatus, ToolResult
from .shelf import Shelf

REMEMBERED_IDS: Final = 4096
"""Done calls that a session remembers, so that a long session does not grow."""
_SMALL_BYTES: Final = 2048
"""Of larger arguments a digest is remembered, once the call is done."""

_canonical = msgspec.json.Encoder(order="deterministic").encode


class Verdict(Enum):
    """What ``SessionCalls.accept`` says of a call."""

    NEW = "new"
    """It is in the book now and is to be run, once."""
    SAME = "same"
    """It runs already; the sender gets that call's one answer."""
    DONE = "done"
    """It was answered, and ``result`` still has the answer."""
    EXPIRED = "expired"
    """It was answered, and the answer is not kept any more."""
    CONFLICT = "conflict"
    """The id belongs to a call with other content."""
    FULL = "full"
    """The session has as many accepted calls as it may."""


class _Call(msgspec.Struct, frozen=True, gc=False):
    """What is remembered of a call: what makes two calls the same, and whether it may safely run again."""

    name: str
    arguments: dict[str, Any] | bytes
    """As they came; of large ones of a done call the digest of their canonical JSON."""
    local: bool

    def same_as(self, name: str, arguments: dict[str, Any]) -> bool:
        if self.name != name:
            return False
        if isinstance(self.arguments, bytes):
            return self.arguments == _digest(arguments)
        return _canonical(self.arguments) == _canonical(arguments)

    def small(self, size: int) -> "_Call":
        """The same, without holding on to large arguments."""
        if size <= _SMALL_BYTES or isinstance(self.arguments, bytes):
            return self
        return msgspec.structs.replace(self, arguments=_digest(self.arguments))


class SessionCalls:
    """The calls of one session, by request key (``decoding.request_key``)."""

    __slots__ = ("_done", "_max_accepted", "_running", "_session_id", "_shelf")

    def __init__(self, session_id: str, max_accepted: int, shelf: Shelf) -> None:
        self._session_id = session_id
        self._max_accepted = max_accepted
        # Where results are kept; its principal's, so it may be shared with other sessions.
        self._shelf = shelf
        # Calls that are accepted and whose answer is not sent yet.
        self._running: dict[str, _Call] = {}
        # Calls whose answer was sent, oldest first.
        self._done: OrderedDict[str, _Call] = OrderedDict()

    def __len__(self) -> int:
        return len(self._running)

    def __repr__(self) -> str:
        return f"<SessionCalls running={len(self._running)}/{self._max_accepted} done={len(self._done)}>"

    def accept(self, key: str, name: str, arguments: dict[str, Any], now: float, *, local: bool) -> Verdict:
        """Judge a call and, where it is new, enter it."""
        known = self._running.get(key)
        if known is not None:
            return Verdict.SAME if known.same_as(name, arguments) else Verdict.CONFLICT
        if key in self._done:
            verdict = self._judge_done(key, name, arguments, now)
            if verdict is not Verdict.NEW:
                return verdict
        if len(self._running) >= self._max_accepted:
            return Verdict.FULL
        self._running[key] = _Call(name, arguments, local)
        return Verdict.NEW

    def finish(self, key: str, result: ToolResult, size: int, frame_bytes: int, now: float) -> None:
        """The call's one answer, of ``size`` bytes, is out; its frame had ``frame_bytes``."""
        call = self._running.pop(key)
        self._done[key] = call.small(frame_bytes)
        self._shelf.put((self._session_id, key), result, size, now)
        if len(self._done) > REMEMBERED_IDS:
            self._shelf.drop((self._session_id, self._done.popitem(last=False)[0]))

    def withdraw(self, key: str) -> None:
        """The call was entered and is not to run after all: as if it had never come."""
        self._running.pop(key, None)

    def result(self, key: str, now: float) -> ToolResult | None:
        """The kept result of a call that is done."""
        return self._shelf.get((self._session_id, key), now)

    def forget(self, keys: Iterable[str]) -> None:
        """The client has these results; they need not be kept."""
        for key in keys:
            if key in self._done:
                self._shelf.drop((self._session_id, key))
                self._forget_local(key)

    def end(self) -> None:
        """The session is over: nobody can ask for its results any more."""
        for key in self._done:
            self._shelf.drop((self._session_id, key))
        self._done.clear()

    def status(self, key: str, now: float) -> CallStatus:
        """What is known of an id."""
        if key in self._running:
            return "running"
        if key not in self._done:
            return "unknown"
        if self.result(key, now) is not None:
            return "done"
        return "unknown" if self._done[key].local else "expired"

    def _judge_done(self, key: str, name: str, arguments: dict[str, Any], now: float) -> Verdict:
        """A done call's id came again. Where its result is gone and it may run again, it is new."""
        call = self._done[key]
        kept = self.result(key, now) is not None
        if not kept and call.local:
            self._forget_local(key)
            return Verdict.NEW
        if not call.same_as(name, arguments):
            return Verdict.CONFLICT
        return Verdict.DONE if kept else Verdict.EXPIRED

    def _forget_local(self, key: str) -> None:
        if self._done[key].local:
            del self._done[key]


def _digest(arguments: dict[str, Any]) -> bytes:
    return hashlib.blake2b(_canonical(arguments), digest_size=16).digest()
