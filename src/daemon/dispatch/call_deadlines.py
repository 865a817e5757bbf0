"""Ends calls at their deadlines.

A timer per call would cost as much as registering the call, and few calls reach their deadlines. So deadlines are
grouped by ticks. Only calls that still run when the tick of their deadline begins get a timer.
"""

import asyncio
import time
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from ...protocol.tool_call import MAX_TIMEOUT_S
from .running_call import RunningCall

TICKS_PER_S: Final = 32
"""The length of a tick: only calls that end within 1/32 s of their deadline may get a timer. Each tick with a deadline
takes some 200 bytes until it begins, so shorter ticks would need more memory.
"""

_TIMER_ERROR_TICKS: Final = 0.001 * TICKS_PER_S
"""The resolution of the loop's timers: a timer may fire this early."""
_MIN_EXTENSION_S: Final = 0.5
"""The minimum interval between two extensions of a deadline by progress."""


def extended_deadline(started: float, deadline: float, now: float, window_s: float, max_timeout_s: float) -> float:
    """Returns the deadline of a call that is making progress: ``window_s`` from now, within ``max_timeout_s`` of its
    start; never an earlier one.
    """
    return max(deadline, min(now + window_s, started + max_timeout_s))


class CallDeadlines:
    """The deadlines of the calls that run. ``expire`` ends a call, and does nothing if the call has ended."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        expire: Callable[[RunningCall], None],
        clock: Callable[[], float] = time.monotonic,
        *,
        max_timeout_s: Callable[[], float] = lambda: MAX_TIMEOUT_S,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._expire = expire
        self._max_timeout_s = max_timeout_s
        # By the tick of the deadline, in order of arrival. Timers for the same instant keep this order, so a parent
        # ends before its children with the same deadline.
        self._calls: dict[int, dict[RunningCall, None]] = {}
        # A heap of the ticks of ``_calls``.
        self._ticks: list[int] = []
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return sum(map(len, self._calls.values()))

    def add(self, call: RunningCall) -> None:
        """Expire a call at its deadline, unless it is removed earlier."""
        tick = int(call.deadline * TICKS_PER_S)
        try:
            self._calls[tick][call] = None
        except KeyError:
            self._calls[tick] = {call: None}
            heappush(self._ticks, tick)
            if self._ticks[0] == tick:
                self._set_timer()

    def remove(self, call: RunningCall) -> None:
        """Remove an ended call. If the tick of its deadline has begun, ``expire`` is still called with it."""
        calls = self._calls.get(int(call.deadline * TICKS_PER_S))
        if calls is not None:
            calls.pop(call, None)
            if not calls:
                calls.clear()  # frees its memory; the tick stays for the next call

    def move(self, call: RunningCall, deadline: float) -> None:
        """Give a running call another deadline. Does nothing if the call has ended."""
        if not call.answered:
            self.remove(call)
            call.deadline = deadline
            self.add(call)

    def extend(self, call: RunningCall, window_s: float) -> None:
        """Extend the deadline of a call that makes progress to ``window_s`` from now, unless its caller has set a
        timeout.

        A child stays within its parent's time.
        """
        if call.request.timeout_ms is not None:
            return
        deadline = extended_deadline(call.started, call.deadline, self._clock(), window_s, self._max_timeout_s())
        if call.parent is not None:
            deadline = min(deadline, call.parent.deadline)
        if deadline >= call.deadline + _MIN_EXTENSION_S:
            self.move(call, deadline)

    def _expire_due(self, call: RunningCall, deadline: float) -> None:
        if call.deadline == deadline:  # else it has moved since
            self._expire(call)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._ticks[0] / TICKS_PER_S, self._begin_ticks) if self._ticks else None

    def _begin_ticks(self) -> None:
        present = self._clock() * TICKS_PER_S + _TIMER_ERROR_TICKS
        while self._ticks and (self._ticks[0] <= present or not self._calls[self._ticks[0]]):
            for call in self._calls.pop(heappop(self._ticks)):
                self._loop.call_at(call.deadline, self._expire_due, call, call.deadline)
        self._set_timer()
