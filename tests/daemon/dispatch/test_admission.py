"""Who is let in, as a table."""

import pytest
from toold.daemon.dispatch.admission import Load, deadline_s, session_is_full, too_many_waiting


@pytest.mark.parametrize(
    ("can_run_now", "waiting", "refused"),
    [(True, 0, False), (True, 5000, False), (False, 0, False), (False, 999, False), (False, 1000, True)],
)
def test_only_a_call_that_would_wait_too_many_is_refused(can_run_now: bool, waiting: int, refused: bool) -> None:
    """A call that can run at once is let in whatever waits; one that would wait, up to the bound."""
    refusal = too_many_waiting(Load(can_run_now, waiting, 1000))
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
    assert deadline_s(wished_ms, 30.0, 1800.0) == given


def test_a_tools_own_time_keeps_to_the_maximum_too() -> None:
    """An operator's maximum holds for every call."""
    assert deadline_s(None, 600.0, 60.0) == (60.0, False)
