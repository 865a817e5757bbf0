"""A figure is flat if it neither grew since the warm-up nor is still growing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.chaos.flat import FEWEST, course


@pytest.mark.parametrize(
    ("samples", "flat"),
    [
        ([100.0] * 100, True),
        ([10.0 * min(number, 10) for number in range(100)], True),  # fills up, then stays
        ([100.0 + number / 20 for number in range(100)], True),  # within 5 %
        ([100.0 - number for number in range(100)], True),  # falls
        ([100.0, 108.0] * 50, True),  # oscillates
        ([100.0 + number / 4 for number in range(100)], False),  # grows steadily
        ([100.0] * 50 + [100.0 + number / 2 for number in range(50)], False),  # starts to grow
        ([100.0] * 60 + [120.0] * 40, False),  # grew once, beyond the bound
    ],
)
def test_a_growing_figure_is_not_flat(samples: list[float], flat: bool) -> None:
    """The bound is 5 % plus a slack of 2."""
    assert course(samples, slack=2.0).flat is flat


@given(st.lists(st.floats(0, 1e9), min_size=FEWEST, max_size=200), st.floats(0, 1e6))
def test_the_course_is_computed_from_the_samples(samples: list[float], slack: float) -> None:
    """The means are within the range of the samples; the bound depends only on the second quarter."""
    went = course(samples, slack)
    assert all(min(samples) - 1 <= mean <= max(samples) + 1 for mean in went.quarters)
    assert went.allowed == went.quarters[1] * 0.05 + slack


def test_too_few_samples_are_an_error() -> None:
    """Fewer than 16 samples raise an error instead of a meaningless verdict."""
    with pytest.raises(ValueError, match="15 samples are too few; it takes 16"):
        course([1.0] * 15, 0)
