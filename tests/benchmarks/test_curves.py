"""What is said of a curve: its slope, and whether it is steeper than it may be."""

import pytest
from benchmarks.growth.curves import TOLERANCE, Curve, slope
from hypothesis import given
from hypothesis import strategies as st

WORK = (10, 100, 1000, 10_000)


def curve(costs: tuple[float, ...], steepest: int) -> Curve:
    return Curve("a curve", "things", "ms", 1 if steepest else 0, list(zip(WORK, costs, strict=True)))


@given(st.floats(0.001, 1000), st.floats(-1, 3))
def test_the_slope_is_the_exponent_of_what_is_measured(factor: float, exponent: float) -> None:
    """Cost that is a power of the work has that power as its slope, whatever one of it costs."""
    assert slope([(work, factor * work**exponent) for work in WORK]) == pytest.approx(exponent, abs=1e-6)


@pytest.mark.parametrize(
    ("costs", "steepest", "too_steep"),
    [
        ((1.0, 10.0, 100.0, 1000.0), 1, False),
        ((1.0, 100.0, 10_000.0, 1_000_000.0), 1, True),
        ((5.0, 5.1, 4.9, 5.0), 0, False),
        ((5.0, 50.0, 500.0, 5000.0), 0, True),
    ],
    ids=["linear", "quadratic", "flat", "grows"],
)
def test_what_is_steeper_than_it_may_be_is_flagged(costs: tuple[float, ...], steepest: int, too_steep: bool) -> None:
    """Work that costs the same each time may be linear, and what does not depend on how much there is must be flat."""
    assert curve(costs, steepest).too_steep is too_steep


def test_growth_that_begins_late_is_seen() -> None:
    """A curve that is flat at first and steep at its end is flagged, though its slope as a whole is fine."""
    late = Curve("late", "things", "ms", 1, [(1, 9.0), (10, 9.0), (100, 9.0), (1000, 20.0), (10_000, 9000.0)])
    assert late.slope < 1 + TOLERANCE
    assert late.too_steep


def test_one_point_has_no_slope() -> None:
    """A slope of less than two points is refused instead of made up."""
    with pytest.raises(ValueError, match="two points"):
        slope([(10, 1.0)])
