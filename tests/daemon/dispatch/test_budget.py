"""The day's budget: what is let through, what is refused with which words, and when it begins anew."""

import contextlib
import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.daemon.dispatch.budget import RESERVED_RETRY_MS, Budget, refusal, reset_at
from toold.protocol.error_codes import RateLimitedError
from toold.protocol.tool_call import Cost

NOON = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC).timestamp()
TWELVE_HOURS_MS = 12 * 3600 * 1000


def refused(spent: float, reserved: float, asked: float | None, amount: float = 1.0) -> RateLimitedError | None:
    cost = None if asked is None else Cost(asked, "USD")
    return refusal({"USD": amount}, {"USD": spent}, {"USD": reserved}, cost, NOON)


def test_it_resets_at_midnight_utc() -> None:
    """A second before midnight there is a second to wait, at midnight a day."""
    midnight = dt.datetime(2026, 5, 2, tzinfo=dt.UTC).timestamp()
    assert (reset_at(NOON), reset_at(midnight - 1), reset_at(midnight)) == (midnight, midnight, midnight + 86400)


@pytest.mark.parametrize("asked", [None, 0.0, 0.1])
def test_a_spent_budget_says_when_it_resets(asked: float | None) -> None:
    """Whatever would be asked, the error says how much, until when, and can be repeated then."""
    error = refused(1.0, 0.0, asked)
    assert error is not None
    assert (error.code, error.executed, error.retryable) == ("RATE_LIMITED", "no", True)
    assert error.retry_after_ms == TWELVE_HOURS_MS
    assert "1 USD is spent; it resets at 2026-05-02 00:00 UTC" in error.message
    assert error.details is not None
    assert (error.details["spent"], error.details["budget"]) == ({"USD": 1.0}, {"USD": 1.0})
    assert error.details["resets_at"] == reset_at(NOON)


def test_what_is_under_way_is_reckoned_with() -> None:
    """A completion goes where it fits beside those that are not answered yet; else it may come again soon."""
    assert refused(0.5, 0.2, 0.3) is None
    error = refused(0.5, 0.3, 0.3)
    assert error is not None
    assert (error.retryable, error.retry_after_ms) == (True, RESERVED_RETRY_MS)
    assert "running calls have reserved the rest" in error.message


def test_a_completion_that_is_too_dear_for_today_waits_for_tomorrow() -> None:
    """It says what it is reckoned at and what is left; a smaller one goes."""
    error = refused(0.9, 0.0, 0.3)
    assert error is not None
    assert (error.retryable, error.retry_after_ms) == (True, TWELVE_HOURS_MS)
    assert "is 0.3 USD, and 0.1 USD of today's 1 USD are left" in error.message
    assert refused(0.9, 0.0, 0.1) is None


def test_a_completion_that_no_day_has_room_for_is_not_to_be_repeated() -> None:
    """To wait would not help: the message says what does."""
    error = refused(0.0, 0.0, 1.5)
    assert error is not None
    assert not error.retryable
    assert "more than the whole daily budget" in error.message
    assert "max_tokens" in error.message


def test_a_budget_of_nothing_asks_nobody() -> None:
    """Zero is an amount."""
    assert refused(0.0, 0.0, None, amount=0.0) is not None


def test_each_currency_has_its_own_amount() -> None:
    """What is not bounded goes; but once one amount is spent nothing is asked, in whatever currency."""
    yuan = Cost(99.0, "CNY")
    assert refusal({"USD": 1.0}, {"USD": 0.5, "CNY": 500.0}, {}, yuan, NOON) is None
    assert refusal({"USD": 1.0}, {"USD": 1.0}, {}, yuan, NOON) is not None
    assert refusal({"USD": 1.0, "CNY": 50.0}, {}, {}, yuan, NOON) is not None
    assert refusal({}, {"USD": 1e9}, {}, yuan, NOON) is None


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=30))
def test_no_more_is_spent_than_what_was_reckoned_too_low(calls: list[tuple[float, float]]) -> None:
    """Whatever is asked one after the other: past the amount goes only what answers cost beyond their reckoning."""
    budget = Budget({"USD": 1.0}, clock=lambda: NOON)
    spent = too_low = 0.0
    for estimated, real in calls:
        try:
            with budget.reserve(Cost(estimated, "USD")):
                budget.spend(Cost(real, "USD"))
        except RateLimitedError:
            continue
        spent += real
        too_low += max(0.0, real - estimated)
    assert spent <= 1.0 + too_low + 1e-6
    assert budget.state()["reserved"] == {}


def test_what_is_held_is_given_back_however_the_block_ends() -> None:
    """A call that fails or is cancelled leaves room for the next one."""
    budget = Budget({"USD": 1.0}, clock=lambda: NOON)
    for _ in range(3):
        with contextlib.suppress(LookupError), budget.reserve(Cost(0.9, "USD")):
            assert budget.state()["reserved"] == {"USD": 0.9}
            raise LookupError
    assert (budget.state()["reserved"], budget.state()["spent"]) == ({}, {})


def test_it_goes_on_after_a_restart_and_begins_anew_with_the_day() -> None:
    """What was spent today before the start counts, what was spent yesterday does not."""
    now = [NOON]
    budget = Budget({"USD": 1.0}, clock=lambda: now[0])
    budget.restore("2026-04-30", {"USD": 5.0})
    budget.restore("2026-05-01", {"USD": 0.75})
    budget.spend(Cost(0.25, "USD"))
    with pytest.raises(RateLimitedError), budget.reserve(None):
        raise AssertionError
    now[0] += 12 * 3600
    with budget.reserve(None):
        assert budget.state()["spent"] == {}
        assert budget.state()["day"] == "2026-05-02"


def test_amounts_can_change_while_it_counts() -> None:
    """A larger budget lets calls go on at once."""
    budget = Budget({"USD": 1.0}, clock=lambda: NOON)
    budget.spend(Cost(1.0, "USD"))
    budget.amounts = {"USD": 2.0}
    with budget.reserve(Cost(0.5, "USD")):
        assert budget.state()["reserved"] == {"USD": 0.5}
