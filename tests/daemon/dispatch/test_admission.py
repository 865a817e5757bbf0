"""Admission limits and call timeouts."""

import pytest
from toold.daemon.dispatch.admission import session_is_full, timeout_s_of, too_many_waiting


@pytest.mark.parametrize(("waiting", "refused"), [(0, False), (999, False), (1000, True), (5000, True)])
def test_a_call_that_would_wait_is_refused_at_the_limit(waiting: int, refused: bool) -> None:
    """Below the limit it may wait; at the limit it is refused at once, with ``retry_after_ms``."""
    refusal = too_many_waiting(waiting, 1000)
    assert (refusal is not None) is refused
    if refusal is not None:
        assert refusal.to_tool_error().retryable
        assert refusal.retry_after_ms


def test_a_full_session_names_its_limit() -> None:
    """The message contains the number, and the error has ``retry_after_ms``."""
    error = session_is_full(32)
    assert "32" in error.message
    assert error.retry_after_ms
    assert error.executed == "no"


@pytest.mark.parametrize(
    ("wished_ms", "given"),
    [(None, (30.0, False)), (1.0, (0.001, False)), (60_000.0, (60.0, False)), (1e12, (1800.0, True))],
)
def test_a_requested_timeout_is_capped(wished_ms: float | None, given: tuple[float, bool]) -> None:
    """Without a requested timeout the tool's applies; a larger one than the maximum is lowered and reported."""
    assert timeout_s_of(wished_ms, 30.0, 1800.0) == given


def test_a_tools_timeout_is_capped_too() -> None:
    """The operator's maximum applies to every call."""
    assert timeout_s_of(None, 600.0, 60.0) == (60.0, False)
