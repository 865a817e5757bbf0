"""The slope of a curve, and whether it is flagged as too steep."""

import pytest
from benchmarks.growth.curves import TOLERANCE, Curve, slope
from hypothesis import given
from hypothesis import strategies as st

WORK = (10, 100, 1000, 10_000)


def curve(costs: tuple[float, ...], limit: int) -> Curve:
    return Curve("a curve", "things", "ms", 1 if limit else 0, list(zip(WORK, costs, strict=True)))


@given(st.floats(0.001, 1000), st.floats(-1, 3))
def test_the_slope_is_the_exponent_of_the_cost(factor: float, exponent: float) -> None:
    """A cost that is a power of the work has its exponent as slope, for any factor."""
    assert slope([(work, factor * work**exponent) for work in WORK]) == pytest.approx(exponent, abs=1e-6)


@pytest.mark.parametrize(
    ("costs", "limit", "too_steep"),
    [
        ((1.0, 10.0, 100.0, 1000.0), 1, False),
        ((1.0, 100.0, 10_000.0, 1_000_000.0), 1, True),
        ((5.0, 5.1, 4.9, 5.0), 0, False),
        ((5.0, 50.0, 500.0, 5000.0), 0, True),
    ],
    ids=["linear", "quadratic", "flat", "grows"],
)
def test_a_curve_steeper_than_its_limit_is_flagged(costs: tuple[float, ...], limit: int, too_steep: bool) -> None:
    """With a limit of 1 a cost may be linear; with a limit of 0 it must be constant."""
    assert curve(costs, limit).too_steep is too_steep


def test_growth_that_starts_late_is_flagged() -> None:
    """A curve with a steep end is flagged even if its overall slope is within the limit."""
    late = Curve("late", "things", "ms", 1, [(1, 9.0), (10, 9.0), (100, 9.0), (1000, 20.0), (10_000, 9000.0)])
    assert late.slope < 1 + TOLERANCE
    assert late.too_steep


def test_one_point_has_no_slope() -> None:
    """Fewer than two points raise an error."""
    with pytest.raises(ValueError, match="two points"):
        slope([(10, 1.0)])
