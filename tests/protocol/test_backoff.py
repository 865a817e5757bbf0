"""Exponential backoff with equal jitter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.backoff import backoff_s

DRAWS = st.floats(0, 1, exclude_max=True)


@pytest.mark.parametrize(("attempt", "window"), [(0, 1), (1, 2), (2, 4), (4, 16), (5, 30), (10_000, 30)])
def test_the_window_doubles_up_to_the_cap(attempt: int, window: float) -> None:
    """The lowest draw gives half of the window, the highest all of it."""
    assert backoff_s(attempt, 0.0, base_s=1.0, cap_s=30.0) == window / 2
    assert backoff_s(attempt, 1.0, base_s=1.0, cap_s=30.0) == window


@given(st.integers(0, 20), DRAWS, st.floats(0, 600))
def test_at_least_is_a_lower_bound(attempt: int, draw: float, at_least_s: float) -> None:
    """A peer's Retry-After is never undercut, and at most half of the cap is added to it."""
    pause = backoff_s(attempt, draw, base_s=1.0, cap_s=30.0, at_least_s=at_least_s)
    assert at_least_s <= pause <= max(at_least_s, 15.0) + 15.0
