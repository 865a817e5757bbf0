"""Deadlines of calls: one timer of the event loop ends each call soon after its deadline, never before it."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st
from toold.daemon.dispatch.call_deadlines import TICKS_PER_S, CallDeadlines

_TICK_S: Final = 1 / TICKS_PER_S


class _FakeLoop:
    """A loop whose time moves by hand; it has at most one timer."""

    def __init__(self) -> None:
        self.now = 100.0
        self.due_at: float | None = None
        self._callback: Callable[[], None] | None = None

    def call_at(self, when: float, callback: Callable[[], None]) -> Any:
        assert self.due_at is None, "a second timer"
        self.due_at, self._callback = when, callback
        return SimpleNamespace(cancel=self._clear)

    def pass_time(self, until: float) -> None:
        while self.due_at is not None and self.due_at <= until:
            self.now = max(self.now, self.due_at)
            assert self._callback is not None
            callback = self._callback
            self._clear()
            callback()
        self.now = until

    def _clear(self) -> None:
        self.due_at = self._callback = None


def _deadlines(loop: _FakeLoop) -> tuple[CallDeadlines, list[Any]]:
    expired: list[Any] = []

    def expire(call: Any) -> None:
        expired.append((call.name, loop.now))

    real: Any = loop
    return CallDeadlines(real, expire, clock=lambda: loop.now), expired


def _call(name: object, deadline: float) -> Any:
    return _Call(name, deadline)


class _Call:
    def __init__(self, name: object, deadline: float) -> None:
        self.name, self.deadline = name, deadline


@given(st.lists(st.tuples(st.floats(0.001, 60), st.booleans()), max_size=20))
def test_each_call_expires_within_a_tick_of_its_deadline_unless_removed(calls: list[tuple[float, bool]]) -> None:
    """Whatever the order of deadlines, none is early, none is late by more than a tick, and none is forgotten."""
    loop = _FakeLoop()
    deadlines, expired = _deadlines(loop)
    added = [_call(number, loop.now + timeout_s) for number, (timeout_s, _) in enumerate(calls)]
    for call in added:
        deadlines.add(call)
    for call, (_, removed) in zip(added, calls, strict=True):
        if removed:
            deadlines.remove(call)
    loop.pass_time(loop.now + 61)
    ended = dict(expired)
    assert set(ended) == {number for number, (_, removed) in enumerate(calls) if not removed}
    assert all(0 <= at - added[number].deadline <= _TICK_S for number, at in ended.items())
    assert len(deadlines) == 0
    assert loop.due_at is None


def test_a_parent_ends_before_its_child_with_the_same_deadline() -> None:
    """The parent ends its children with its own reason."""
    loop = _FakeLoop()
    deadlines, expired = _deadlines(loop)
    for name in ("parent", "child", "another child"):
        deadlines.add(_call(name, 101.0))
    loop.pass_time(102)
    assert [name for name, _ in expired] == ["parent", "child", "another child"]


def test_a_call_can_be_added_and_removed_while_others_expire() -> None:
    """Ending a call removes it and its children, and may begin others."""
    loop = _FakeLoop()
    ended: list[str] = []
    later = _call("later", 103.0)

    def expire(call: Any) -> None:
        ended.append(call.name)
        deadlines.remove(call)
        if call.name == "first":
            deadlines.add(later)

    real: Any = loop
    deadlines = CallDeadlines(real, expire, clock=lambda: loop.now)
    deadlines.add(_call("first", 101.0))
    deadlines.add(_call("second", 101.0))
    loop.pass_time(104)
    assert ended == ["first", "second", "later"]


async def test_a_real_loop_ends_calls_in_order() -> None:
    """A deadline that is nearer than all others moves the timer forward."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    ended: list[str] = []

    def expire(call: Any) -> None:
        ended.append(call.name)
        if call.name == "far":
            done.set_result(None)

    deadlines = CallDeadlines(loop, expire)
    deadlines.add(_call("far", loop.time() + 0.2))
    deadlines.add(_call("near", loop.time() + 0.05))
    await done
    assert ended == ["near", "far"]
