"""When a client comes back: the rules, without a clock and without dice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.client import reconnect_policy
from toold.client.reconnect_policy import LATER_STEP, MAX_DELAY_S, reconnect_delay_s, reconnect_when, session_survives

DRAWS = st.floats(0, 1, exclude_max=True)


@pytest.fixture(autouse=True)
def usual_pauses(short_pauses: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses as they are for users."""
    monkeypatch.setattr(reconnect_policy, "FIRST_WINDOW_S", 1.0)


@pytest.mark.parametrize("code", [1000, 1001, 1002, 1006, 1009, 1011, 1012, 1014, 4002, 4999])
def test_what_may_pass_at_any_moment_is_tried_at_once(code: int) -> None:
    """A restart, a break, a missing pong, and codes that nobody knows: come back, after the first pause."""
    assert reconnect_when(code) == "at once"


@pytest.mark.parametrize("code", [1008, 1013])
def test_whoever_is_too_much_comes_later(code: int) -> None:
    """A daemon that is full, or reads that were too slow: coming back at once would meet the same."""
    assert reconnect_when(code) == "later"


@pytest.mark.parametrize("code", [4000, 4001, 4003, 4004])
def test_what_cannot_get_better_by_itself_is_not_tried(code: int) -> None:
    """No hello, no right, or another client in one's place: nobody comes back unasked, and the session is over."""
    assert reconnect_when(code) == "never"
    assert not session_survives(code)


@pytest.mark.parametrize(("code", "lives"), [(1006, True), (1012, True), (1008, True), (1009, False)])
def test_a_frame_that_was_too_long_ends_the_session(code: int, lives: bool) -> None:
    """Every resume would bring the same frame again; other breaks leave the session as it was."""
    assert session_survives(code) is lives


@given(draw=DRAWS)
def test_the_first_pause_is_anywhere_in_its_window(draw: float) -> None:
    """A thousand clients that lost the same daemon are spread evenly over a second."""
    assert reconnect_delay_s(0, draw) == draw


@given(step=st.integers(1, 10_000), draw=DRAWS)
def test_later_pauses_double_up_to_a_cap(step: int, draw: float) -> None:
    """Each is drawn from the upper half of a window that doubles and never passes 30 s."""
    window = min(2.0**step, 30.0) if step < 10 else 30.0
    assert window / 2 <= reconnect_delay_s(step, draw) <= window <= MAX_DELAY_S


def test_later_means_some_seconds() -> None:
    """Whoever is told to come later waits four seconds at least, eight at most."""
    assert (reconnect_delay_s(LATER_STEP, 0.0), reconnect_delay_s(LATER_STEP, 0.999) < 8) == (4.0, True)
