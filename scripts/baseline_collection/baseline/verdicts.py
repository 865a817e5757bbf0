"""Turns figures into a verdict. Pure."""

import math
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from .record import Estimate, Load

SIGNIFICANCE: Final = 0.05
"""The probability that a comparison without changes reports any tool as slower or faster."""
_WORDS: Final = ((0.147, "negligible"), (0.33, "small"), (0.474, "medium"))
"""Romano and others, 'Exploring methods for evaluating group differences' (2006), for Cliff's delta."""

Verdict = Literal["slower", "faster", "same", "not enough data"]
Key = tuple[str, Load]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The thresholds for a change."""

    threshold: float
    """Smaller changes of the median are ignored."""
    significance: float = SIGNIFICANCE


def decide(ratio: Estimate, p: float, trials: int, of: str, options: Options) -> tuple[Verdict, str]:
    """The verdict and its reason, from the ratio of medians, the corrected p-value, and the number of trials (``of``
    names their unit).

    Slower or faster: passes the rank test, is beyond the threshold, and its interval excludes 1. Same: the whole
    interval is within the threshold.
    """
    low, high = ratio.low or 0.0, ratio.high or math.inf
    limit = 1 + options.threshold
    significant = p <= options.significance and not low <= 1 <= high
    if significant and ratio.value >= limit:
        return "slower", f"the median is {ratio.value - 1:.0%} higher"
    if significant and ratio.value <= 1 / limit:
        return "faster", f"the median is {1 - ratio.value:.0%} lower"
    if 1 / limit < low and high < limit:
        return "same", f"any change is below {options.threshold:.0%}"
    return (
        "not enough data",
        f"the interval is too wide; about {_needed(low, high, trials, limit)} {of} are needed",
    )


def holm(ps: Mapping[Key, float]) -> dict[Key, float]:
    """The p-values corrected for their number with Holm's step-down method."""
    corrected: dict[Key, float] = {}
    largest = 0.0
    for rank, (key, p) in enumerate(sorted(ps.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, (len(ps) - rank) * p))
        corrected[key] = largest
    return corrected


def effect_in_words(delta: float) -> str:
    """The conventional name for the size of Cliff's delta."""
    return next((word for limit, word in _WORDS if abs(delta) < limit), "large")


def _needed(low: float, high: float, trials: int, limit: float) -> int:
    """The number of trials that brings half of the interval below the threshold; it narrows with their square root."""
    if low <= 0 or math.isinf(high):
        return trials * 10
    half = (math.log(high) - math.log(low)) / 2
    needed = max(trials * 2, math.ceil(trials * (half / (math.log(limit) / 2)) ** 2))
    step: int = 10 ** max(0, len(str(needed)) - 2)  # two significant digits
    return math.ceil(needed / step) * step
