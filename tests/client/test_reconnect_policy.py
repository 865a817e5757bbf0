"""When a client reconnects, by close code and backoff step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.client import reconnect_policy
from toold.client.reconnect_policy import LATER_STEP, MAX_DELAY_S, reconnect_delay_s, reconnect_when, session_survives

DRAWS = st.floats(0, 1, exclude_max=True)


@pytest.fixture(autouse=True)
def default_delays(short_delays: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The delays in production."""
    monkeypatch.setattr(reconnect_policy, "FIRST_WINDOW_S", 1.0)


@pytest.mark.parametrize("code", [1000, 1001, 1002, 1006, 1009, 1011, 1012, 1014, 4002, 4999])
def test_transient_ends_reconnect_at_once(code: int) -> None:
    """A restart, a lost connection, a missing pong, and unknown codes: after the first delay."""
    assert reconnect_when(code) == "at once"


@pytest.mark.parametrize("code", [1008, 1013])
def test_an_overloaded_daemon_is_retried_later(code: int) -> None:
    """A full daemon, or a client that reads too slowly."""
    assert reconnect_when(code) == "later"


@pytest.mark.parametrize("code", [4000, 4001, 4003, 4004, 4005])
def test_permanent_ends_do_not_reconnect(code: int) -> None:
    """No hello, no access, or a superseded session: the session is over."""
    assert reconnect_when(code) == "never"
    assert not session_survives(code)


@pytest.mark.parametrize(("code", "lives"), [(1006, True), (1012, True), (1008, True), (1009, False)])
def test_a_frame_that_was_too_long_ends_the_session(code: int, lives: bool) -> None:
    """A resume would redeliver the same frame; other ends leave the session intact."""
    assert session_survives(code) is lives


@given(draw=DRAWS)
def test_the_first_delay_is_drawn_from_the_whole_window(draw: float) -> None:
    """The clients of one daemon spread evenly over a second."""
    assert reconnect_delay_s(0, draw) == draw


@given(step=st.integers(1, 10_000), draw=DRAWS)
def test_later_delays_double_up_to_a_cap(step: int, draw: float) -> None:
    """Each is drawn from the upper half of a window of at most 30 s."""
    window = min(2.0**step, 30.0) if step < 10 else 30.0
    assert window / 2 <= reconnect_delay_s(step, draw) <= window <= MAX_DELAY_S


def test_later_means_four_to_eight_seconds() -> None:
    """The delay after such a close code is between 4 and 8 s."""
    assert (reconnect_delay_s(LATER_STEP, 0.0), reconnect_delay_s(LATER_STEP, 0.999) < 8) == (4.0, True)
