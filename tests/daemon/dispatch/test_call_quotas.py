"""Quotas of calls: what counts, what is refused, and when the next call is possible."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.daemon.dispatch.call_quotas import CallQuota, CallQuotas

MIDNIGHT = 1_800_057_600.0  # 2027-01-16, 0:00 UTC


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def wall(self) -> float:
        return MIDNIGHT + self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def quotas(clock: Clock) -> CallQuotas:
    return CallQuotas(clock=clock, wall_clock=clock.wall)


def quota(per_minute: int | None = None, per_day: int | None = None, *, tools: str = "*", who: str = "*") -> CallQuota:
    return CallQuota(f"{tools}-{who}", (tools,), (who,), per_minute, per_day)


def test_a_quota_holds_for_each_principal_and_its_tools_together(quotas: CallQuotas) -> None:
    """Calls of other tools and of other principals do not count."""
    quotas.apply([quota(2, tools="web_*", who="ci")])
    assert quotas.refusal("web_search", "ci") is None
    assert quotas.refusal("web_fetch", "ci") is None
    refusal = quotas.refusal("web_fetch", "ci")
    assert refusal is not None
    assert (refusal.retryable, refusal.retry_after_ms) == (True, 60_000)
    assert "2 calls per minute for web_*" in refusal.message
    assert quotas.refusal("echo", "ci") is None
    assert quotas.refusal("web_fetch", "local") is None


def test_a_refused_call_takes_nothing(quotas: CallQuotas, clock: Clock) -> None:
    """A call that one of two quotas refuses does not count for the other."""
    quotas.apply([quota(1, tools="echo"), quota(None, 2, tools="*")])
    assert quotas.refusal("echo", "p") is None
    assert quotas.refusal("echo", "p") is not None
    assert quotas.refusal("chat", "p") is None
    refusal = quotas.refusal("chat", "p")
    assert refusal is not None
    assert refusal.retry_after_ms == (86400 - clock.now) * 1000


def test_the_day_is_counted_over_restarts_and_begins_at_midnight(quotas: CallQuotas, clock: Clock) -> None:
    """Calls of an earlier process of this day count, until the next day."""
    quotas.apply([quota(None, 3)])
    quotas.restore("2027-01-16", {("p", "echo"): 2, ("q", "echo"): 9})
    assert quotas.refusal("echo", "p") is None
    assert quotas.refusal("echo", "p") is not None
    assert quotas.refusal("echo", "q") is not None
    clock.now += 86400
    assert quotas.refusal("echo", "q") is None


def test_a_changed_quota_keeps_what_was_counted(quotas: CallQuotas, clock: Clock) -> None:
    """A lowered quota refuses until enough calls are a minute old."""
    quotas.apply([quota(3)])
    for _ in range(3):
        assert quotas.refusal("echo", "p") is None
        clock.now += 10
    quotas.apply([quota(1)])
    refusal = quotas.refusal("echo", "p")
    assert refusal is not None
    assert refusal.retry_after_ms == 50_000
    clock.now += 50
    assert quotas.refusal("echo", "p") is None


@given(steps=st.lists(st.floats(0, 90), max_size=60), limit=st.integers(1, 5))
def test_no_minute_has_more_calls(steps: list[float], limit: int) -> None:
    """In any 60 seconds at most the quota passes, and a call is possible at the time that a refusal names."""
    clock = Clock()
    quotas = CallQuotas(clock=clock, wall_clock=clock.wall)
    quotas.apply([quota(limit)])
    passed: list[float] = []
    for step in steps:
        clock.now += step
        refusal = quotas.refusal("echo", "p")
        if refusal is not None:
            clock.now += (refusal.retry_after_ms or 0) / 1000
            assert quotas.refusal("echo", "p") is None
        passed.append(clock.now)
    assert all(passed[at + limit] - passed[at] >= 60 - 1e-6 for at in range(len(passed) - limit))
