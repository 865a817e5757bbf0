"""The session's book of calls: which run, which are done, and what it means when the same request id comes again.

A state machine without I/O; the clock is handed in. A call goes ``running → done → delivered``, and done ones are
remembered with what they were, so that a repeat is answered with the same result and another call under the same id is
refused. A call that was not journalled, since it is local (read-only and closed-world) or ended before it was started,
is forgotten altogether once its result is gone, since it may safely run again; any other is remembered as expired. Of a
long session the oldest are left to the journal. Who holds the session, and that it is taken over, is in ``sessions``.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, Final

import msgspec

from .result_cache import ResultCache
from .tool_call import CallStatus, ToolResult

REMEMBERED_IDS: Final = 4096
"""Done calls that a session has in memory, so that a long one does not grow. Ids that were journalled are known for
longer, by the journal.
"""
_SMALL_BYTES: Final = 2048
"""Of larger arguments a digest is remembered, once the call is done."""

_canonical = msgspec.json.Encoder(order="deterministic").encode


class RequestIdState(Enum):
    """What ``SessionCalls.accept`` says of a call."""

    NEW = "new"
    """It is entered and is to be run, once."""
    RUNNING = "running"
    """It runs already; the sender gets that call's one answer."""
    DONE = "done"
    """It was answered, and ``result`` still has the answer."""
    EXPIRED = "expired"
    """It was answered, and the answer is not kept any more."""
    CONFLICT = "conflict"
    """The id belongs to a call with other content."""
    FULL = "full"
    """The session has as many accepted calls as it may."""


class PendingResult(msgspec.Struct, frozen=True, gc=False):
    """A call that is done and whose result is kept."""

    key: str
    name: str
    journalled: bool
    echo_id: bool
    """Its answer bears the id under the older name as well."""
    since: float
    """When it ended."""
    result: ToolResult


class _Call(msgspec.Struct, frozen=True, gc=False):
    """What is remembered of a call: what makes two calls the same, and whether it may safely run again."""

    name: str
    arguments: dict[str, Any] | bytes
    """As they came; of large ones of a done call the digest of their canonical JSON."""
    echo_id: bool
    since: float = 0.0
    """When it ended, where it has."""
    journalled: bool = False
    interrupted: bool = False

    def same_as(self, name: str, arguments: dict[str, Any]) -> bool:
        if self.name != name:
            return False
        if isinstance(self.arguments, bytes):
            return self.arguments == arguments_digest(arguments)
        return _canonical(self.arguments) == _canonical(arguments)

    def done(self, frame_bytes: int, now: float, *, journalled: bool) -> "_Call":
        """The same, now that it has its answer, without holding on to large arguments."""
        arguments = self.arguments
        if frame_bytes > _SMALL_BYTES and not isinstance(arguments, bytes):
            arguments = arguments_digest(arguments)
        return _Call(self.name, arguments, self.echo_id, now, journalled)


class SessionCalls:
    """The calls of one session, by request key (``decoding.request_key``)."""

    __slots__ = ("_cache", "_done", "_over", "_running", "_sending", "_session_id", "incomplete", "max_accepted")

    def __init__(self, session_id: str, max_accepted: int, cache: ResultCache) -> None:
        self._session_id = session_id
        self.max_accepted = max_accepted
        """As it was when the session was opened; the setting may be another by now."""
        self.incomplete = False
        """The journal may know calls that this book does not: a long session's oldest."""
        # Where results are kept; its principal's, so it may be shared with other sessions.
        self._cache = cache
        # Calls that are accepted and have no answer yet.
        self._running: dict[str, _Call] = {}
        # Calls that have their answer, oldest first.
        self._done: OrderedDict[str, _Call] = OrderedDict()
        # Of these, how many answers are still on their way out: a slow reader is to make no more calls.
        self._sending = 0
        self._over = False

    def __len__(self) -> int:
        return len(self._running) + self._sending

    def __repr__(self) -> str:
        return f"<SessionCalls running={len(self._running)}/{self.max_accepted} done={len(self._done)}>"

    @property
    def running(self) -> list[str]:
        """The keys of the calls that have no answer yet, the oldest first."""
        return list(self._running)

    def accept(
        self, key: str, name: str, arguments: dict[str, Any], now: float, *, echo_id: bool = False
    ) -> RequestIdState:
        """Judge a call and, where it is new, enter it."""
        state = self.classify(key, name, arguments, now)
        if state is RequestIdState.NEW:
            self._running[key] = _Call(name, arguments, echo_id)
        return state

    def classify(self, key: str, name: str, arguments: dict[str, Any], now: float) -> RequestIdState:
        """What ``accept`` would say of a call."""
        known = self._running.get(key)
        if known is not None:
            return RequestIdState.RUNNING if known.same_as(name, arguments) else RequestIdState.CONFLICT
        if key in self._done:
            state = self._classify_done(key, name, arguments, now)
            if state is not RequestIdState.NEW:
                return state
        if len(self._running) + self._sending >= self.max_accepted:
            return RequestIdState.FULL
        return RequestIdState.NEW

    def finish(
        self, key: str, result: ToolResult, size: int, frame_bytes: int, now: float, *, journalled: bool
    ) -> None:
        """The call has its one answer, of ``size`` bytes, and that is on its way; its frame had ``frame_bytes``."""
        self._sending += 1
        call = self._running.pop(key)
        if not self._over:
            self._remember(key, call.done(frame_bytes, now, journalled=journalled), result, size)

    def finish_in_journal(self, key: str) -> None:
        """The call has an answer, which is on its way; of its id the journal knows, and this book need not."""
        self._sending += 1
        del self._running[key]

    def delivered(self) -> None:
        """An answer that ``finish`` or ``refer`` told of is on its way no more: it was sent, or nobody is there."""
        self._sending -= 1

    def restore(
        self,
        key: str,
        name: str,
        arguments_hash: bytes,
        result: ToolResult | None,
        size: int,
        since: float,
        *,
        echo_id: bool,
        journalled: bool,
        interrupted: bool,
    ) -> None:
        """Enter a call that was done before this book was; the earliest first. ``since`` is when it ended."""
        self._remember(key, _Call(name, arguments_hash, echo_id, since, journalled, interrupted), result, size)

    def withdraw(self, key: str) -> None:
        """The call was entered and is not to run after all: as if it had never come."""
        self._running.pop(key, None)

    def result(self, key: str, now: float) -> ToolResult | None:
        """The kept result of a call that is done."""
        return self._cache.get((self._session_id, key), now)

    def retained(self, now: float) -> Iterator[PendingResult]:
        """The calls whose results are kept, in the order in which they were done."""
        for key, call in self._done.items():
            result = self.result(key, now)
            if result is not None:
                yield PendingResult(key, call.name, call.journalled, call.echo_id, call.since, result)

    def arguments_hash(self, key: str) -> bytes:
        """What is remembered of the arguments of a call that is known, where they themselves are not to be."""
        arguments = (self._running.get(key) or self._done[key]).arguments
        return arguments if isinstance(arguments, bytes) else arguments_digest(arguments)

    def acknowledge(self, keys: Iterable[str]) -> list[str]:
        """The client has these results; they need not be kept. Returns the keys of those that were done, and where the
        book is incomplete some of which it does not know whether they were.
        """
        forgotten: list[str] = []
        unknown: list[str] = []
        for key in dict.fromkeys(keys):  # a client may say it twice
            if key in self._done:
                forgotten.append(key)
                self._cache.drop((self._session_id, key))
                self._drop_unless_journalled(key)
            elif self.incomplete and key not in self._running and len(unknown) < REMEMBERED_IDS:
                unknown.append(key)
        return forgotten + unknown

    def end(self) -> None:
        """The session is over, or out of memory: nobody can ask this book for its results any more."""
        self._over = True
        for key in self._done:
            self._cache.drop((self._session_id, key))
        self._done.clear()

    def status(self, key: str, now: float) -> CallStatus:
        """What is known of an id; ``unknown`` is the last word only where the book is not ``incomplete``."""
        if key in self._running:
            return "running"
        if key not in self._done:
            return "unknown"
        call = self._done[key]
        if self.result(key, now) is not None:
            return "interrupted" if call.interrupted else "done"
        return "expired" if call.journalled else "unknown"

    def _remember(self, key: str, call: _Call, result: ToolResult | None, size: int) -> None:
        self._done[key] = call
        if result is not None:
            self._cache.put((self._session_id, key), result, size, call.since)
        if len(self._done) > REMEMBERED_IDS:
            oldest, evicted = self._done.popitem(last=False)
            self._cache.drop((self._session_id, oldest))
            self.incomplete = self.incomplete or evicted.journalled

    def _classify_done(self, key: str, name: str, arguments: dict[str, Any], now: float) -> RequestIdState:
        """A done call's id came again. Where nothing was executed and it was told that it may be sent again, or its
        result is gone and it may run again, it is new.
        """
        call = self._done[key]
        result = self.result(key, now)
        kept = result is not None
        if not call.journalled and (result is None or _can_run_again(result)):
            self._cache.drop((self._session_id, key))
            self._drop_unless_journalled(key)
            return RequestIdState.NEW
        if not call.same_as(name, arguments):
            return RequestIdState.CONFLICT
        return RequestIdState.DONE if kept else RequestIdState.EXPIRED

    def _drop_unless_journalled(self, key: str) -> None:
        if not self._done[key].journalled:
            del self._done[key]


def _can_run_again(result: ToolResult) -> bool:
    return result.error is not None and result.error.executed == "no" and result.error.retryable


def arguments_digest(arguments: dict[str, Any]) -> bytes:
    """What is remembered of a call's arguments where they themselves are not."""
    return hashlib.blake2b(_canonical(arguments), digest_size=16).digest()
