"""Ends calls at their deadlines, with one timer of the event loop for all calls.

A timer per call costs as much as registering the call, and hardly any call reaches its deadline.
"""

import asyncio
import time
from collections.abc import Callable
from heapq import heappop, heappush
from math import ceil
from typing import Final

from .running_call import RunningCall

TICKS_PER_S: Final = 32
"""A call ends at the first tick after its deadline, so at most 1/32 s late. Shorter ticks would need more memory: each
tick that has had a deadline takes some 200 bytes until it is over."""

_TIMER_ERROR_S: Final = 0.001
"""The loop's timers go by whole milliseconds, so that one may fire this early."""


class CallDeadlines:
    """The deadlines of the calls that run. ``expire`` ends a call."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        expire: Callable[[RunningCall], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._expire = expire
        # By tick, in the order in which the calls came: a parent ends before its children with the same deadline.
        self._calls: dict[int, dict[RunningCall, None]] = {}
        # A heap of the ticks of ``_calls``.
        self._ticks: list[int] = []
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return sum(map(len, self._calls.values()))

    def add(self, call: RunningCall) -> None:
        """Expire a call at its deadline, unless it is removed before."""
        tick = ceil(call.deadline * TICKS_PER_S)
        try:
            self._calls[tick][call] = None
        except KeyError:
            self._calls[tick] = {call: None}
            heappush(self._ticks, tick)
            if self._ticks[0] == tick:
                self._set_timer()

    def remove(self, call: RunningCall) -> None:
        """Forget a call. Does nothing if it has expired."""
        calls = self._calls.get(ceil(call.deadline * TICKS_PER_S))
        if calls is not None:
            calls.pop(call, None)
            if not calls:
                calls.clear()  # frees its memory; the tick stays for the next call

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._ticks[0] / TICKS_PER_S, self._fire) if self._ticks else None

    def _fire(self) -> None:
        now = (self._clock() + _TIMER_ERROR_S) * TICKS_PER_S
        due: list[RunningCall] = []
        while self._ticks and (self._ticks[0] <= now or not self._calls[self._ticks[0]]):
            due += self._calls.pop(heappop(self._ticks))
        self._set_timer()
        for call in due:
            self._expire(call)
