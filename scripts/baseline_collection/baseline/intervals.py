"""Quantiles, and 95 % intervals of estimates. The sampling is seeded, so the same calls give the same figures."""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .record import Estimate

RESAMPLES: Final = 2000
CONFIDENCE: Final = 0.95
METHOD: Final = "median_unbiased"
"""Type 8 of Hyndman and Fan, 'Sample Quantiles in Statistical Packages' (1996), as they recommend."""
_SEED: Final = 20260101
_BATCH: Final = 2_000_000
"""The number of values that are drawn at once, 16 MB."""

Floats = NDArray[np.float64]


def quantiles(values: Sequence[float], which: Sequence[float]) -> list[Estimate]:
    """Each quantile (0.5 is the median) of one or more values, with its interval if there are at least two values."""
    sample = np.asarray(values, dtype=np.float64)
    points = np.quantile(sample, which, method=METHOD)
    if len(sample) < 2:
        return [Estimate(value=float(point)) for point in points]
    bounds = _bounds(_resampled_quantiles(sample, which, np.random.default_rng(_SEED)))
    return [
        Estimate(value=float(point), low=float(low), high=float(high))
        for point, low, high in zip(points, *bounds, strict=True)
    ]


def ratio_of_medians(before: Sequence[float], after: Sequence[float]) -> Estimate:
    """The median of ``after`` divided by that of ``before``; each has two or more positive values."""
    generator = np.random.default_rng(_SEED)
    old, new = (np.asarray(values, dtype=np.float64) for values in (before, after))
    ratios = _resampled_quantiles(new, [0.5], generator) / _resampled_quantiles(old, [0.5], generator)
    low, high = _bounds(ratios)
    return Estimate(value=float(np.median(new) / np.median(old)), low=float(low[0]), high=float(high[0]))


def rate(successes: int, count: int) -> Estimate:
    """The share of successes among one or more calls, with Wilson's interval."""
    share = successes / count
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    center = (share + z * z / (2 * count)) / (1 + z * z / count)
    margin = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    low = 0.0 if successes == 0 else center - margin  # exactly: rounding would leave a tiny remainder
    high = 1.0 if successes == count else center + margin
    return Estimate(value=share, low=low, high=high)


def _resampled_quantiles(sample: Floats, which: Sequence[float], generator: np.random.Generator) -> Floats:
    """One row per resample, one column per quantile."""
    rows = max(1, _BATCH // len(sample))
    parts: list[Any] = []
    for start in range(0, RESAMPLES, rows):
        drawn = generator.integers(len(sample), size=(min(rows, RESAMPLES - start), len(sample)))
        parts.append(np.quantile(sample[drawn], which, axis=1, method=METHOD).T)
    return np.concatenate(parts)


def _bounds(resampled: Floats) -> Floats:
    tail = (1 - CONFIDENCE) / 2
    return np.quantile(resampled, [tail, 1 - tail], axis=0)
