"""Whether figures that were sampled over a time stay flat. Pure.

The first quarter of the samples is warm-up: caches fill, pools grow, modules are imported. From then on

- the mean of the last quarter may be above that of the second by 5 % and a slack, and
- so may the end of the least-squares line through the second half be above its beginning.

The first says that nothing grew since the warm-up, the second that nothing grows still. What sinks is flat.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression
from typing import Final

SHARE: Final = 0.05
FEWEST: Final = 16
"""Samples below which nothing is said."""


@dataclass(frozen=True, slots=True)
class Course:
    """How one figure went."""

    quarters: tuple[float, float, float, float]
    """The means."""
    grown: float
    """From the second quarter to the last."""
    rise: float
    """Of the line through the second half, from its beginning to its end."""
    allowed: float
    """As much as both may be."""

    @property
    def flat(self) -> bool:
        return self.grown <= self.allowed and self.rise <= self.allowed


def course(samples: Sequence[float], slack: float) -> Course:
    """How samples at even distances went, where ``slack`` is what counts as nothing, in their unit.

    Raises:
        ValueError: there are fewer than 16.
    """
    if len(samples) < FEWEST:
        raise ValueError(f"{len(samples)} samples say nothing; it takes {FEWEST}")
    cuts = [len(samples) * quarter // 4 for quarter in range(5)]
    first, second, third, last = (fmean(samples[cuts[i] : cuts[i + 1]]) for i in range(4))
    half = samples[cuts[2] :]
    slope = linear_regression(range(len(half)), half).slope
    return Course((first, second, third, last), last - second, slope * (len(half) - 1), second * SHARE + slack)
