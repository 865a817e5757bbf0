"""The circuit breaker refuses calls to a vendor that is down, and always tries again."""

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
from toold.providers.circuit_breaker import FAILURES_TO_OPEN, FIRST_PAUSE_S, LONGEST_PAUSE_S, MIN_SILENCE_S


def opened(now: float = 0.0) -> CircuitBreaker:
    breaker = CircuitBreaker()
    for _ in range(FAILURES_TO_OPEN):
        assert breaker.admit(now) is None
        breaker.record_failure(now)
    return breaker


def test_opens_after_five_consecutive_failures() -> None:
    """The fifth failure opens the breaker for 15 s. A success in between resets the count."""
    breaker = CircuitBreaker()
    for _ in range(2):
        for _ in range(FAILURES_TO_OPEN - 1):
            breaker.record_failure(0.0)
        breaker.record_success(0.0)
    assert breaker.state(0.0) == "closed"
    breaker = opened(100.0)
    assert breaker.state(100.0) == "open"
    assert breaker.admit(105.0) == FIRST_PAUSE_S - 5.0


def test_one_probe_is_admitted_after_the_pause() -> None:
    """After the pause the breaker admits one call and refuses others while that call runs."""
    breaker = opened()
    assert breaker.state(FIRST_PAUSE_S) == "half-open"
    assert breaker.admit(FIRST_PAUSE_S) is None
    assert breaker.admit(FIRST_PAUSE_S) is not None
    assert breaker.state(FIRST_PAUSE_S) == "half-open"


def test_successful_probe_closes_the_breaker() -> None:
    """One success closes the breaker and resets the pause and the count."""
    breaker = opened()
    breaker.admit(FIRST_PAUSE_S)
    breaker.record_success(20.0)
    assert breaker.state(20.0) == "closed"
    assert (breaker.failures, breaker.pause_s, breaker.answered_at) == (0, FIRST_PAUSE_S, 20.0)
    assert breaker.admit(20.0) is None
    assert breaker.admit(20.0) is None


def test_each_failed_probe_doubles_the_pause_up_to_two_minutes() -> None:
    """The pauses are 15, 30, 60, 120, 120 … seconds."""
    breaker, now, pauses = opened(), 0.0, []
    for _ in range(5):
        pauses.append(breaker.pause_s)
        now += breaker.pause_s
        assert breaker.admit(now) is None
        breaker.record_failure(now)
    assert pauses == [15.0, 30.0, 60.0, 120.0, 120.0]
    assert breaker.pause_s == LONGEST_PAUSE_S


def test_cancelled_probe_admits_the_next_probe() -> None:
    """After a cancelled probe the breaker admits another call at once."""
    breaker = opened()
    breaker.admit(FIRST_PAUSE_S)
    breaker.record_cancelled(16.0)
    assert breaker.admit(16.0) is None


def test_unreported_probe_expires() -> None:
    """If the outcome of a probe is never recorded, the breaker admits the next probe after another pause."""
    breaker = opened()
    breaker.admit(FIRST_PAUSE_S)
    assert breaker.admit(2 * FIRST_PAUSE_S - 0.1) is not None
    assert breaker.admit(2 * FIRST_PAUSE_S) is None


def test_late_failures_do_not_lengthen_the_pause() -> None:
    """Calls that were admitted before the breaker opened do not change the pause when they fail or are cancelled."""
    breaker = opened()
    for _ in range(20):
        breaker.record_failure(1.0)
        breaker.record_cancelled(1.0)
    assert breaker.pause_s == FIRST_PAUSE_S
    assert breaker.admit(1.0) == FIRST_PAUSE_S - 1.0


Event = st.sampled_from(["admit", "success", "failure", "cancelled"])


@given(st.lists(st.tuples(st.floats(0, 200), Event), max_size=80))
def test_refusals_are_bounded_after_any_history(history: list[tuple[float, str]]) -> None:
    """After any history, a refusal names a time within two minutes at which a call is admitted. While the breaker is
    open, two probes start at least one pause apart, unless one was cancelled. One success closes it.
    """
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
        (CallTimeoutError(details={"silent_s": MIN_SILENCE_S}), True),
        (CallTimeoutError(details={"silent_s": 0.5}), False),
        (RateLimitedError(), False),
        (ProviderError(), False),
    ],
)
def test_only_outages_count_against_the_vendor(error: CallError, counts: bool) -> None:
    """Refusals, short deadlines and streams that were still active do not count."""
    assert counts_against_vendor(error) is counts
