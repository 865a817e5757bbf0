"""Daily budgets: what is admitted, what is refused with which message, and the reset."""

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


def test_the_budget_resets_at_midnight_utc() -> None:
    """One second before midnight the wait is a second, at midnight a day."""
    midnight = dt.datetime(2026, 5, 2, tzinfo=dt.UTC).timestamp()
    assert (reset_at(NOON), reset_at(midnight - 1), reset_at(midnight)) == (midnight, midnight, midnight + 86400)


@pytest.mark.parametrize("asked", [None, 0.0, 0.1])
def test_a_spent_budget_says_when_it_resets(asked: float | None) -> None:
    """The error contains the amount and the reset time, and is retryable."""
    error = refused(1.0, 0.0, asked)
    assert error is not None
    assert (error.code, error.executed, error.retryable) == ("RATE_LIMITED", "no", True)
    assert error.retry_after_ms == TWELVE_HOURS_MS
    assert "1 USD is spent; it resets at 2026-05-02 00:00 UTC" in error.message
    assert error.details is not None
    assert (error.details["spent"], error.details["budget"]) == ({"USD": 1.0}, {"USD": 1.0})
    assert error.details["resets_at"] == reset_at(NOON)


def test_reserved_costs_count() -> None:
    """A completion passes if it fits next to the reserved costs; otherwise it can be retried soon."""
    assert refused(0.5, 0.2, 0.3) is None
    error = refused(0.5, 0.3, 0.3)
    assert error is not None
    assert (error.retryable, error.retry_after_ms) == (True, RESERVED_RETRY_MS)
    assert "running calls have reserved the rest" in error.message


def test_a_completion_that_exceeds_the_rest_waits_for_the_reset() -> None:
    """The error contains the estimate and the rest; a cheaper completion passes."""
    error = refused(0.9, 0.0, 0.3)
    assert error is not None
    assert (error.retryable, error.retry_after_ms) == (True, TWELVE_HOURS_MS)
    assert "is 0.3 USD, and 0.1 USD of today's 1 USD are left" in error.message
    assert refused(0.9, 0.0, 0.1) is None


def test_a_completion_that_exceeds_the_budget_is_not_retryable() -> None:
    """Waiting would not help; the message says what does."""
    error = refused(0.0, 0.0, 1.5)
    assert error is not None
    assert not error.retryable
    assert "more than the whole daily budget" in error.message
    assert "max_tokens" in error.message


def test_a_budget_of_zero_refuses_everything() -> None:
    """Zero is an amount."""
    assert refused(0.0, 0.0, None, amount=0.0) is not None


def test_each_currency_has_its_own_amount() -> None:
    """A currency without an amount is not limited, but once one amount is spent everything is refused."""
    yuan = Cost(99.0, "CNY")
    assert refusal({"USD": 1.0}, {"USD": 0.5, "CNY": 500.0}, {}, yuan, NOON) is None
    assert refusal({"USD": 1.0}, {"USD": 1.0}, {}, yuan, NOON) is not None
    assert refusal({"USD": 1.0, "CNY": 50.0}, {}, {}, yuan, NOON) is not None
    assert refusal({}, {"USD": 1e9}, {}, yuan, NOON) is None


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=30))
def test_overspending_is_limited_to_underestimates(calls: list[tuple[float, float]]) -> None:
    """Sequential completions exceed the amount only by what answers cost beyond their estimates."""
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


def test_a_reservation_ends_with_its_block() -> None:
    """A call that fails or is cancelled releases its reservation."""
    budget = Budget({"USD": 1.0}, clock=lambda: NOON)
    for _ in range(3):
        with contextlib.suppress(LookupError), budget.reserve(Cost(0.9, "USD")):
            assert budget.state()["reserved"] == {"USD": 0.9}
            raise LookupError
    assert (budget.state()["reserved"], budget.state()["spent"]) == ({}, {})


def test_amounts_spent_today_are_restored() -> None:
    """Amounts spent today before the start count, those of yesterday do not."""
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


def test_amounts_can_change_at_run_time() -> None:
    """A larger budget admits calls at once."""
    budget = Budget({"USD": 1.0}, clock=lambda: NOON)
    budget.spend(Cost(1.0, "USD"))
    budget.amounts = {"USD": 2.0}
    with budget.reserve(Cost(0.5, "USD")):
        assert budget.state()["reserved"] == {"USD": 0.5}
