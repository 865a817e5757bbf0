"""How the time of a call is divided into attempts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.providers.vendor_transport import MAX_RETRIES, RETRY_PAUSE_S, AttemptPlan, plan_attempts


@pytest.mark.parametrize(
    ("remaining_s", "attempt_s", "attempts"),
    [
        (30.0, 25.0, AttemptPlan(25.0, 0)),
        (10.0, 25.0, AttemptPlan(10.0, 0)),
        (57.9, 25.0, AttemptPlan(25.0, 0)),
        (58.0, 25.0, AttemptPlan(25.0, 1)),
        (1800.0, 25.0, AttemptPlan(25.0, 2)),
        (0.0, 25.0, AttemptPlan(0.0, 0)),
    ],
)
def test_retries_are_allowed_if_they_fit(remaining_s: float, attempt_s: float, attempts: AttemptPlan) -> None:
    """The default 30 s allow one attempt. More time allows at most two retries."""
    assert plan_attempts(remaining_s, attempt_s) == attempts


@given(st.floats(0, 2000), st.floats(0.01, 600))
def test_attempts_never_outlast_the_call(remaining_s: float, attempt_s: float) -> None:
    """Even if every attempt and every pause takes its maximum time, all attempts end by the deadline."""
    attempts = plan_attempts(remaining_s, attempt_s)
    assert 0 <= attempts.retries <= MAX_RETRIES
    assert attempts.timeout_s <= attempt_s
    whole_s = attempts.timeout_s * (attempts.retries + 1) + RETRY_PAUSE_S * attempts.retries
    assert whole_s <= remaining_s + 1e-6
