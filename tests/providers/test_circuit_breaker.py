"""The circuit breaker: refuses a vendor that is down, and always tries again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.error_codes import (
    CallError,
    CallTimeoutError,
    ProviderError,
    RateLimitedError,
    ServiceUnavailableError,
)
from toold.providers import CircuitBreaker, counts_against_vendor
from toold.providers.circuit_breaker import FAILURES_TO_OPEN, FIRST_PAUSE_S, LONGEST_PAUSE_S, PATIENCE_S


def opened(now: float = 0.0) -> CircuitBreaker:
    breaker = CircuitBreaker()
    for _ in range(FAILURES_TO_OPEN):
        assert breaker.admit(now) is None
        breaker.record_failure(now)
    return breaker


def test_it_opens_after_five_failures_in_a_row() -> None:
    """The fifth failure shuts the vendor for 15 s; a success in between starts the count anew."""
    breaker = CircuitBreaker()
    for _ in range(2):
        for _ in range(FAILURES_TO_OPEN - 1):
            breaker.record_failure(0.0)
        breaker.record_success(0.0)
    assert breaker.state(0.0) == "closed"
    breaker = opened(100.0)
    assert breaker.state(100.0) == "open"
    assert breaker.admit(105.0) == FIRST_PAUSE_S - 5.0


def test_one_probe_goes_through_after_the_pause() -> None:
    """After the pause one call is let through, and further ones are refused while it runs."""
    breaker = opened()
    assert breaker.state(FIRST_PAUSE_S) == "half-open"
    assert breaker.admit(FIRST_PAUSE_S) is None
    assert breaker.admit(FIRST_PAUSE_S) is not None
    assert breaker.state(FIRST_PAUSE_S) == "half-open"


def test_a_probe_that_succeeds_closes_it() -> None:
    """One answer is enough; the pause and the count are as at first."""
    breaker = opened()
    breaker.admit(FIRST_PAUSE_S)
    breaker.record_success(20.0)
    assert breaker.state(20.0) == "closed"
    assert (breaker.failures, breaker.pause_s, breaker.answered_at) == (0, FIRST_PAUSE_S, 20.0)
    assert breaker.admit(20.0) is None
    assert breaker.admit(20.0) is None


def test_each_failed_probe_doubles_the_pause_up_to_two_minutes() -> None:
    """15, 30, 60, 120, 120 … seconds."""
    breaker, now, pauses = opened(), 0.0, []
    for _ in range(5):
        pauses.append(breaker.pause_s)
        now += breaker.pause_s
        assert breaker.admit(now) is None
        breaker.record_failure(now)
    assert pauses == [15.0, 30.0, 60.0, 120.0, 120.0]
    assert breaker.pause_s == LONGEST_PAUSE_S


def test_a_probe_that_is_cancelled_lets_another_go() -> None:
    """A caller that goes away does not leave the breaker waiting."""
    breaker = opened()
    breaker.admit(FIRST_PAUSE_S)
    breaker.record_cancelled(16.0)
    assert breaker.admit(16.0) is None


def test_a_probe_that_nobody_reports_on_is_given_up() -> None:
    """After another pause the next probe goes."""
    breaker = opened()
    breaker.admit(FIRST_PAUSE_S)
    assert breaker.admit(2 * FIRST_PAUSE_S - 0.1) is not None
    assert breaker.admit(2 * FIRST_PAUSE_S) is None


def test_late_failures_do_not_lengthen_the_pause() -> None:
    """Calls that were admitted before it opened, and fail after, change nothing; nor does their being cancelled."""
    breaker = opened()
    for _ in range(20):
        breaker.record_failure(1.0)
        breaker.record_cancelled(1.0)
    assert breaker.pause_s == FIRST_PAUSE_S
    assert breaker.admit(1.0) == FIRST_PAUSE_S - 1.0


Event = st.sampled_from(["admit", "success", "failure", "cancelled"])


@given(st.lists(st.tuples(st.floats(0, 200), Event), max_size=80))
def test_whatever_happens_it_never_refuses_for_long(history: list[tuple[float, str]]) -> None:
    """After any history: a refusal names a time within two minutes, at which a call is let through; while open, no two
    probes start closer together than the pause, unless one was cancelled; and one success closes it."""
    breaker, now = CircuitBreaker(), 0.0
    probed_at: float | None = None
    for wait, event in history:
        now += wait
        match event:
            case "admit":
                was_closed = breaker.state(now) == "closed"
                refused_for = breaker.admit(now)
                if refused_for is None and not was_closed:
                    assert probed_at is None or now >= probed_at + FIRST_PAUSE_S - 1e-6
                    probed_at = now
                elif refused_for is not None:
                    assert 0 < refused_for <= LONGEST_PAUSE_S
            case "success":
                breaker.record_success(now)
                probed_at = None
                assert breaker.state(now) == "closed"
            case "failure":
                breaker.record_failure(now)
            case "cancelled":
                breaker.record_cancelled(now)
                probed_at = None
    refused_for = breaker.admit(now)
    if refused_for is not None:
        assert breaker.admit(now + refused_for + 1e-6) is None


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (ServiceUnavailableError(), True),
        (CallTimeoutError(), True),
        (CallTimeoutError(details={"silent_s": PATIENCE_S}), True),
        (CallTimeoutError(details={"silent_s": 0.5}), False),
        (RateLimitedError(), False),
        (ProviderError(), False),
    ],
)
def test_only_a_vendor_that_is_down_counts(error: CallError, counts: bool) -> None:
    """Refusals are answers, and a short deadline or a stream that was still flowing proves nothing."""
    assert counts_against_vendor(error) is counts
