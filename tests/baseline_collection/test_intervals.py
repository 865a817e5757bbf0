"""Quantiles and intervals: the method, reproducibility and coverage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baseline.intervals import quantiles, rate, ratio_of_medians


def test_quantiles_are_of_type_8() -> None:
    """Quantiles are Hyndman and Fan's type 8: the median of ten values is between the middle two."""
    half, most = quantiles([float(n) for n in range(1, 11)], (0.5, 0.9))
    assert half.value == pytest.approx(5.5)
    assert most.value == pytest.approx(0.9 * (10 + 1 / 3) + 1 / 3)


@settings(deadline=None, max_examples=25)  # each resamples 2,000 times
@given(st.lists(st.floats(0.01, 1e6), min_size=2, max_size=50))
def test_interval_is_within_the_values(values: list[float]) -> None:
    """An interval does not exceed the range of the values."""
    (half,) = quantiles(values, (0.5,))
    assert half.low is not None
    assert half.high is not None
    assert min(values) <= half.low <= half.high <= max(values)


def test_one_value_has_no_interval() -> None:
    """A single value has no interval."""
    (half,) = quantiles([3.0], (0.5,))
    assert (half.value, half.low, half.high) == (3.0, None, None)


def test_the_same_calls_give_the_same_interval() -> None:
    """The same values give the same figures every time."""
    values = [1.0, 5.0, 2.0, 8.0, 3.0]
    assert quantiles(values, (0.5, 0.99)) == quantiles(values, (0.5, 0.99))


def test_interval_has_its_coverage() -> None:
    """About 95 % of the intervals of samples from a known distribution contain its median."""
    generator = np.random.default_rng(5)
    samples = generator.lognormal(0, 0.5, size=(200, 40)).tolist()
    held = sum(half.low <= 1 <= half.high for sample in samples for half in quantiles(sample, (0.5,)))  # type: ignore[operator] # 40 values have an interval
    assert 180 <= held <= 199


def test_ratio_of_medians() -> None:
    """If all values are doubled, the ratio is 2, and its interval does not contain 1."""
    before = [10 + n / 10 for n in range(30)]
    ratio = ratio_of_medians(before, [2 * value for value in before])
    assert ratio.value == pytest.approx(2)
    assert ratio.low is not None
    assert 1.5 < ratio.low < 2


def test_success_rates_have_wilson_intervals() -> None:
    """Success rates have Wilson's interval: that of ten of ten reaches down to 0.72."""
    all_good = rate(10, 10)
    assert (all_good.value, all_good.high) == (1.0, 1.0)
    assert all_good.low == pytest.approx(0.7225, abs=1e-4)
    assert rate(0, 4).low == 0.0


def test_wilson_intervals_equal_those_of_scipy() -> None:
    """The interval of every rate of up to twenty calls is the one that scipy calculates."""
    from scipy.stats import binomtest  # type: ignore[import-untyped] # it has no types

    for count in range(1, 21):
        for successes in range(count + 1):
            expected = binomtest(successes, count).proportion_ci(0.95, method="wilson")
            ours = rate(successes, count)
            assert (ours.low, ours.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
