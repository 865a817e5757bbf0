"""When a figure counts as flat: neither grown since the warm-up nor growing still."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.chaos.flat import FEWEST, course


@pytest.mark.parametrize(
    ("samples", "flat"),
    [
        ([100.0] * 100, True),
        ([10.0 * min(number, 10) for number in range(100)], True),  # it fills up, and then no more
        ([100.0 + number / 20 for number in range(100)], True),  # within 5 %
        ([100.0 - number for number in range(100)], True),  # it sinks
        ([100.0, 108.0] * 50, True),  # it goes up and down
        ([100.0 + number / 4 for number in range(100)], False),  # it grows all the time
        ([100.0] * 50 + [100.0 + number / 2 for number in range(50)], False),  # it begins to grow
        ([100.0] * 60 + [120.0] * 40, False),  # it grew once, by more than what counts as nothing
    ],
)
def test_what_grows_is_not_flat(samples: list[float], flat: bool) -> None:
    """With a slack of 2."""
    assert course(samples, slack=2.0).flat is flat


@given(st.lists(st.floats(0, 1e9), min_size=FEWEST, max_size=200), st.floats(0, 1e6))
def test_the_figures_are_those_of_the_samples(samples: list[float], slack: float) -> None:
    """The means lie within the samples, and what was allowed follows from the second quarter alone."""
    went = course(samples, slack)
    assert all(min(samples) - 1 <= mean <= max(samples) + 1 for mean in went.quarters)
    assert went.allowed == went.quarters[1] * 0.05 + slack


def test_too_few_samples_say_nothing() -> None:
    """Rather than a verdict that means nothing."""
    with pytest.raises(ValueError, match="15 samples say nothing; it takes 16"):
        course([1.0] * 15, 0)
