"""The calls of one session, running and done. Decides what a repeated request id means.

A state machine without I/O; callers pass the time. A call goes ``running → done → delivered``. Done calls are
remembered, so that a repeat gets the same result or error, and a different call under the same id is rejected. A local
call (read-only and closed-world) is dropped once its result is gone: it may safely run again. Any other call is
journalled, even if it ended before it started, and is remembered as expired. The oldest calls of a long session are
only in the journal. ``session_registry`` tracks which connection holds the session.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, Final

import msgspec

from .arguments_digest import arguments_digest, is_digest_of, same_arguments
from .json_pieces import LONG_BYTES
from .result_cache import ResultCache
from .tool_call import CallStatus, ToolCall, ToolResult

REMEMBERED_IDS: Final = 4096
"""The maximum number of done calls that a session keeps in memory. The journal keeps their ids longer."""
_SMALL_BYTES: Final = 2048
"""Once a call is done, larger arguments are replaced by a digest, except those of local calls of more than
``LONG_BYTES``, which are kept with the result: a digest takes 0.2 ms per MiB, and is rarely needed.
"""


class RequestIdState(Enum):
    """The answer of ``SessionCalls.register``."""

    NEW = "new"
    """The call is new and has to run, once."""
    RUNNING = "running"
    """The call is running; the repeat attaches to it and shares its one answer."""
    DONE = "done"
    """The call was answered, and ``result`` has the answer."""
    EXPIRED = "expired"
    """The call was answered, and the answer is no longer stored."""
    CONFLICT = "conflict"
    """The id belongs to a call with different content."""
    FULL = "full"
    """The session has the maximum of accepted calls."""


_NEW: Final = RequestIdState.NEW
"""On Python 3.11 each access to an enum member costs a Python call."""


class PendingResult(msgspec.Struct, frozen=True, gc=False):
    """A done call whose result is stored."""

    key: str
    name: str
    journalled: bool
    echo_id: bool
    """Whether the answer also has the id under the older field name."""
    since: float
    """The time at which the call ended."""
    result: ToolResult
    size: int
    """The size of the sent result and of the arguments that are kept with it, in bytes."""


class _Call(msgspec.Struct, eq=False, gc=False):
    """The part of a call that identifies repeats and says whether the call may safely run again. Once the call is done,
    its result too. A ``ResultHolder``.
    """

    name: str
    arguments: dict[str, Any] | bytes
    """The arguments as received, or their digest."""
    echo_id: bool
    since: float = 0.0
    """The time at which the call ended; 0 while it runs."""
    journalled: bool = False
    interrupted: bool = False
    started: bool = True
    """Whether the tool had started."""
    result: ToolResult | None = None
    size: int = 0
    kept_bytes: int = 0

    def drop_kept(self) -> None:
        if self.kept_bytes:  # otherwise they are needed: a journalled call is compared with its repeats for longer
            self.arguments, self.kept_bytes = b"", 0

    def same_as(self, name: str, arguments: dict[str, Any], digest: bytes | None) -> bool:
        if self.name != name:
            return False
        if isinstance(self.arguments, bytes):
            return is_digest_of(self.arguments, arguments, digest)
        return same_arguments(self.arguments, arguments)


class SessionCalls:
    """The calls of one session, by request key (``frame_decoding.request_key``)."""

    __slots__ = (
        *("_cache", "_done", "_ended", "_repeatable", "_running", "_sending"),
        *("incomplete", "max_accepted"),
    )

    def __init__(self, max_accepted: int, cache: ResultCache, *, repeatable: bool = True) -> None:
        """``repeatable``: whether the client can repeat a request id."""
        self._repeatable = repeatable
        self.max_accepted = max_accepted
        """The limit when the session was opened. The setting may have changed since then."""
        self.incomplete = False
        """Whether the journal may have calls that are not in memory: the oldest calls of a long session."""
        # The results. The cache belongs to the principal, so other sessions may share it.
        self._cache = cache
        # Accepted calls without an answer.
        self._running: dict[str, _Call] = {}
        # Answered calls, oldest first.
        self._done: OrderedDict[str, _Call] = OrderedDict()
        # The number of unsent answers. They count as accepted calls, so that a slow reader cannot start more calls.
        self._sending = 0
        self._ended = False

    def __len__(self) -> int:
        return len(self._running) + self._sending

    def __repr__(self) -> str:
        return f"<SessionCalls running={len(self._running)}/{self.max_accepted} done={len(self._done)}>"

    @property
    def running(self) -> list[str]:
        """The keys of the calls without an answer, oldest first."""
        return list(self._running)

    def register(self, key: str, name: str, request: ToolCall, now: float) -> RequestIdState:
        """Classifies a call of the tool ``name``, and adds it if it is new."""
        if key in self._running or key in self._done or len(self._running) + self._sending >= self.max_accepted:
            state = self.classify(key, name, request, now)
            if state is not _NEW:
                return state
        self._running[key] = _Call(name, request.identity, request.echo_id)
        return _NEW

    def classify(self, key: str, name: str, request: ToolCall, now: float) -> RequestIdState:
        """Returns what ``register`` would return, without adding the call."""
        known = self._running.get(key)
        if known is not None:
            same = known.same_as(name, request.arguments, request.arguments_hash)
            return RequestIdState.RUNNING if same else RequestIdState.CONFLICT
        if key in self._done:
            state = self._classify_done(key, name, request, now)
            if state is not RequestIdState.NEW:
                return state
        if len(self._running) + self._sending >= self.max_accepted:
            return RequestIdState.FULL
        return RequestIdState.NEW

    def finish(
        self,
        key: str,
        result: ToolResult,
        size: int,
        frame_bytes: int,
        now: float,
        *,
        journalled: bool,
        started: bool = True,
    ) -> None:
        """Records the call's answer of ``size`` bytes, which is about to be sent; the call's frame had
        ``frame_bytes``. ``started`` says whether its tool had started.
        """
        self._sending += 1
        call = self._running.pop(key)
        if self._ended:
            return
        call.since, call.journalled, call.started = now, journalled, started
        if not self._repeatable:
            call.arguments = b""
        elif frame_bytes > _SMALL_BYTES and not isinstance(call.arguments, bytes):
            if frame_bytes > LONG_BYTES and not journalled:
                call.kept_bytes = frame_bytes
            else:
                call.arguments = arguments_digest(call.arguments)
        self._remember(key, call, result, size)

    def finish_in_journal(self, key: str) -> None:
        """Records that the call has an answer, which is about to be sent. Only the journal remembers the call."""
        self._sending += 1
        del self._running[key]

    def delivered(self) -> None:
        """Records that an answer of ``finish`` or ``finish_in_journal`` was sent or has no receiver."""
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
        started: bool = True,
    ) -> None:
        """Adds a done call from the journal. Restore calls in the order in which they ended. ``since`` is the time at
        which this call ended.
        """
        if (known := self._done.get(key)) is not None:
            self._cache.drop(known)
        self._remember(key, _Call(name, arguments_hash, echo_id, since, journalled, interrupted, started), result, size)

    def withdraw(self, key: str) -> None:
        """Removes a new call that will not run."""
        self._running.pop(key, None)

    def result(self, key: str, now: float) -> ToolResult | None:
        """Returns the retained result of a done call."""
        call = self._done.get(key)
        return None if call is None else self._cache.get(call, now)

    def started(self, key: str) -> bool:
        """Whether a done call's tool had started."""
        return self._done[key].started

    def result_bytes(self, key: str) -> int:
        """Returns the size of a done call's retained result, as sent; 0 if there is none."""
        call = self._done.get(key)
        return 0 if call is None else call.size

    def retained(self, now: float) -> Iterator[PendingResult]:
        """Yields the calls with retained results, in the order in which they ended."""
        for key, call in self._done.items():
            result = self._cache.get(call, now)
            if result is not None:
                yield PendingResult(
                    key, call.name, call.journalled, call.echo_id, call.since, result, call.size + call.kept_bytes
                )

    def arguments_hash(self, key: str) -> bytes:
        """Returns the digest of a known call's arguments."""
        return _digest((self._running.get(key) or self._done[key]).arguments)

    def acknowledge(self, keys: Iterable[str]) -> list[str]:
        """Drops results that the client has. Returns the keys of done calls, and if ``incomplete``, also keys of calls
        that may be in the journal.
        """
        acknowledged: list[str] = []
        unknown: list[str] = []
        for key in dict.fromkeys(keys):  # without duplicates
            if key in self._done:
                acknowledged.append(key)
                self._drop_result(key)
            elif self.incomplete and key not in self._running and len(unknown) < REMEMBERED_IDS:
                unknown.append(key)
        return acknowledged + unknown

    def end(self) -> None:
        """Drops all results: the session has ended, or is no longer in memory."""
        self._ended = True
        for call in self._done.values():
            self._cache.drop(call)
        self._done.clear()

    def status(self, key: str, now: float) -> CallStatus:
        """Returns the state of a call; if ``incomplete``, an ``unknown`` call may still be in the journal."""
        if key in self._running:
            return "running"
        if key not in self._done:
            return "unknown"
        call = self._done[key]
        if self._cache.get(call, now) is not None:
            return "interrupted" if call.interrupted else "done"
        return "expired" if call.journalled else "unknown"

    def _remember(self, key: str, call: _Call, result: ToolResult | None, size: int) -> None:
        self._done[key] = call
        if result is not None:
            self._cache.put(call, result, size)
        if len(self._done) > REMEMBERED_IDS:
            evicted = self._done.popitem(last=False)[1]
            self._cache.drop(evicted)
            self.incomplete = self.incomplete or evicted.journalled

    def _classify_done(self, key: str, name: str, request: ToolCall, now: float) -> RequestIdState:
        """Classifies a repeated id of a done call. A local call is new once its result is gone."""
        call = self._done[key]
        result = self._cache.get(call, now)
        if result is None and not call.journalled:
            self._drop_result(key)
            return RequestIdState.NEW
        if not call.same_as(name, request.arguments, request.arguments_hash):
            return RequestIdState.CONFLICT
        return RequestIdState.DONE if result is not None else RequestIdState.EXPIRED

    def _drop_result(self, key: str) -> None:
        """Drops the result of a done call, and the call unless it is journalled."""
        call = self._done[key]
        self._cache.drop(call)
        if not call.journalled:
            del self._done[key]


def _digest(arguments: dict[str, Any] | bytes) -> bytes:
    return arguments if isinstance(arguments, bytes) else arguments_digest(arguments)
