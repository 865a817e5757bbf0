"""Who is let in, as a table."""

import pytest
from toold.daemon.dispatch.admission import session_is_full, timeout_s_of, too_many_waiting


@pytest.mark.parametrize(("waiting", "refused"), [(0, False), (999, False), (1000, True), (5000, True)])
def test_a_call_that_would_wait_is_refused_where_too_many_do(waiting: int, refused: bool) -> None:
    """Up to the bound it may stand in line; past it the answer comes at once, and says when to come again."""
    refusal = too_many_waiting(waiting, 1000)
    assert (refusal is not None) is refused
    if refusal is not None:
        assert refusal.to_tool_error().retryable
        assert refusal.retry_after_ms


def test_a_full_session_is_told_its_bound() -> None:
    """The message has the number, and the error says when to come again."""
    error = session_is_full(32)
    assert "32" in error.message
    assert error.retry_after_ms
    assert error.executed == "no"


@pytest.mark.parametrize(
    ("wished_ms", "given"),
    [(None, (30.0, False)), (1.0, (0.001, False)), (60_000.0, (60.0, False)), (1e12, (1800.0, True))],
)
def test_a_wish_is_granted_up_to_the_maximum(wished_ms: float | None, given: tuple[float, bool]) -> None:
    """No wish takes the tool's own time; too large a wish is lowered, and that is said."""
    assert timeout_s_of(wished_ms, 30.0, 1800.0) == given


def test_a_tools_own_time_keeps_to_the_maximum_too() -> None:
    """An operator's maximum holds for every call."""
    assert timeout_s_of(None, 600.0, 60.0) == (60.0, False)
