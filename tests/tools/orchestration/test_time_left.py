"""How long the parts of a call have."""

from hypothesis import given
from hypothesis import strategies as st
from toold.tools.orchestration.time_left import ANSWER_S, time_left


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_time_passes() -> None:
    """From what was given at the beginning down to nothing, never below."""
    clock = Clock()
    left = time_left(10.0, 60.0, clock)
    assert left() == 10.0
    clock.now += 4.0
    assert left() == 6.0
    clock.now += 40.0
    assert left() == 0.0


@given(st.floats(0.01, 300), st.floats(0.01, 1800))
def test_the_answer_has_time_of_its_own(timeout_s: float, call_left_s: float) -> None:
    """The parts never have more than they were given, and leave the call enough to tell of them."""
    left_s = time_left(timeout_s, call_left_s, Clock())()
    assert 0 < left_s <= timeout_s + 1e-6
    assert left_s <= max(call_left_s - ANSWER_S, call_left_s * 0.8) + 1e-6
