"""Deadlines of calls: each call ends at its deadline, and has no separate timer until shortly before."""

import asyncio
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from toold.daemon.dispatch.call_deadlines import CallDeadlines, extended_deadline


class _Timer:
    def __init__(self, when: float, callback: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.when, self.callback, self.arguments, self.cancelled = when, callback, arguments, False

    def cancel(self) -> None:
        self.cancelled = True


class _FakeLoop:
    """A loop whose time moves by hand."""

    def __init__(self) -> None:
        self.now = 100.0
        self._timers: list[_Timer] = []

    @property
    def timers(self) -> list[_Timer]:
        return [timer for timer in self._timers if not timer.cancelled]

    def call_at(self, when: float, callback: Callable[..., None], *arguments: Any) -> _Timer:
        timer = _Timer(when, callback, arguments)
        self._timers.append(timer)
        return timer

    def pass_time(self, until: float) -> None:
        while due := [timer for timer in self.timers if timer.when <= until]:
            timer = min(due, key=lambda timer: timer.when)
            timer.cancel()
            self.now = max(self.now, timer.when)
            timer.callback(*timer.arguments)
        self.now = until


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
def test_each_call_expires_at_its_deadline_unless_removed(calls: list[tuple[float, bool]]) -> None:
    """Whatever the order of deadlines, none is early or late, and none is forgotten."""
    loop = _FakeLoop()
    deadlines, expired = _deadlines(loop)
    added = [_call(number, loop.now + timeout_s) for number, (timeout_s, _) in enumerate(calls)]
    for call in added:
        deadlines.add(call)
    for call, (_, removed) in zip(added, calls, strict=True):
        if removed:
            deadlines.remove(call)
    loop.pass_time(loop.now + 61)
    assert dict(expired) == {
        call.name: call.deadline for call, (_, removed) in zip(added, calls, strict=True) if not removed
    }
    assert len(deadlines) == 0
    assert loop.timers == []


def test_many_calls_share_one_timer() -> None:
    """Calls whose deadlines are far away have no separate timers."""
    loop = _FakeLoop()
    deadlines, _ = _deadlines(loop)
    for number in range(100):
        deadlines.add(_call(number, 160 - number / 10))
    assert len(loop.timers) == 1


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


@given(st.floats(0, 1000), st.floats(0, 1000), st.floats(0, 2000), st.floats(0.1, 100), st.floats(100, 2000))
def test_progress_extends_a_deadline(started: float, timeout: float, now: float, window: float, most: float) -> None:
    """By the window from now, within the longest timeout; it never comes earlier."""
    deadline = extended_deadline(started, started + timeout, now, window, most)
    assert deadline >= started + timeout
    assert deadline in {started + timeout, now + window, started + most}
    assert deadline <= max(started + timeout, started + most)
