"""From figures to a verdict. Pure."""

import math
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from .record import Estimate, Load

SIGNIFICANCE: Final = 0.05
"""The chance that any tool of a comparison is called slower or faster where none is."""
_WORDS: Final = ((0.147, "negligible"), (0.33, "small"), (0.474, "medium"))
"""Romano and others, 'Exploring methods for evaluating group differences' (2006), for Cliff's delta."""

Verdict = Literal["slower", "faster", "same", "not enough data"]
Key = tuple[str, Load]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What counts as a change."""

    threshold: float
    """A smaller change of the median is none."""
    significance: float = SIGNIFICANCE


def decide(ratio: Estimate, p: float, trials: int, of: str, options: Options) -> tuple[Verdict, str]:
    """The verdict and its reason, from the ratio of medians, the corrected p, and how many trials it comes from (``of``
    says of what).

    Slower or faster is what passes the rank test, lies beyond the threshold, and has no 1 in its interval; the same is
    what has its whole interval within the threshold.
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
        f"the interval is too wide to say; some {_needed(low, high, trials, limit)} {of} would tell",
    )


def holm(ps: Mapping[Key, float]) -> dict[Key, float]:
    """Corrected for their number by Holm's step-down method, so that the chance of any false alarm is what was meant
    for one."""
    corrected: dict[Key, float] = {}
    largest = 0.0
    for rank, (key, p) in enumerate(sorted(ps.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, (len(ps) - rank) * p))
        corrected[key] = largest
    return corrected


def effect_in_words(delta: float) -> str:
    """Cliff's delta as its authors name its sizes."""
    return next((word for limit, word in _WORDS if abs(delta) < limit), "large")


def _needed(low: float, high: float, trials: int, limit: float) -> int:
    """An interval narrows with the root of the number of trials: how many bring half of it below the threshold."""
    if low <= 0 or math.isinf(high):
        return trials * 10
    half = (math.log(high) - math.log(low)) / 2
    needed = max(trials * 2, math.ceil(trials * (half / (math.log(limit) / 2)) ** 2))
    step: int = 10 ** max(0, len(str(needed)) - 2)  # two digits are as much as is known
    return math.ceil(needed / step) * step
