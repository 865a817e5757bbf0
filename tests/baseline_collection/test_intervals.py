"""Quantiles and intervals: by the stated method, the same each time, and right about as often as they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baseline.intervals import quantiles, rate, ratio_of_medians


def test_quantiles_are_of_type_8() -> None:
    """The median of ten values lies between the middle two; the 0.9-quantile is Hyndman and Fan's type 8."""
    half, most = quantiles([float(n) for n in range(1, 11)], (0.5, 0.9))
    assert half.value == pytest.approx(5.5)
    assert most.value == pytest.approx(0.9 * (10 + 1 / 3) + 1 / 3)


@settings(deadline=None, max_examples=25)  # each resamples 2,000 times
@given(st.lists(st.floats(0.01, 1e6), min_size=2, max_size=50))
def test_the_interval_lies_among_the_values(values: list[float]) -> None:
    """An interval has its estimate's neighbourhood in it and never leaves the range of the values."""
    (half,) = quantiles(values, (0.5,))
    assert half.low is not None
    assert half.high is not None
    assert min(values) <= half.low <= half.high <= max(values)


def test_one_value_has_no_interval() -> None:
    """Of a single call nothing is said about the spread."""
    (half,) = quantiles([3.0], (0.5,))
    assert (half.value, half.low, half.high) == (3.0, None, None)


def test_the_same_calls_give_the_same_interval() -> None:
    """Reckoned twice, a record has the same figures."""
    values = [1.0, 5.0, 2.0, 8.0, 3.0]
    assert quantiles(values, (0.5, 0.99)) == quantiles(values, (0.5, 0.99))


def test_the_interval_holds_what_it_says() -> None:
    """Of samples drawn from a known distribution, nearly 95 % of the intervals have its median in them."""
    generator = np.random.default_rng(5)
    samples = generator.lognormal(0, 0.5, size=(200, 40)).tolist()
    held = sum(half.low <= 1 <= half.high for sample in samples for half in quantiles(sample, (0.5,)))  # type: ignore[operator] # 40 values have an interval
    assert 180 <= held <= 199


def test_the_ratio_of_medians() -> None:
    """Values that are all doubled have a ratio of 2, and an interval around it that has no 1 in it."""
    before = [10 + n / 10 for n in range(30)]
    ratio = ratio_of_medians(before, [2 * value for value in before])
    assert ratio.value == pytest.approx(2)
    assert ratio.low is not None
    assert 1.5 < ratio.low < 2


def test_success_rates_are_wilsons() -> None:
    """Ten of ten is not certainty: the interval reaches down to 0.72, as Wilson's does."""
    all_good = rate(10, 10)
    assert (all_good.value, all_good.high) == (1.0, 1.0)
    assert all_good.low == pytest.approx(0.7225, abs=1e-4)
    assert rate(0, 4).low == 0.0
