"""Decides whether a sampled figure stays flat. Pure.

The first quarter of the samples is warm-up: caches fill, pools grow, modules are imported. A figure is flat if

- the mean of the last quarter exceeds the mean of the second by at most 5 % plus a slack, and
- the least-squares line through the second half rises by at most the same amount.

The first condition shows that nothing grew since the warm-up, the second that nothing is still growing.
A falling figure is flat.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression
from typing import Final

SHARE: Final = 0.05
FEWEST: Final = 16
"""The fewest samples for a verdict."""


@dataclass(frozen=True, slots=True)
class Course:
    """The course of one figure."""

    quarters: tuple[float, float, float, float]
    """The mean of each quarter."""
    grown: float
    """The growth of the mean from the second quarter to the last."""
    rise: float
    """The rise of the line through the second half."""
    allowed: float
    """The bound of both."""

    @property
    def flat(self) -> bool:
        return self.grown <= self.allowed and self.rise <= self.allowed


def course(samples: Sequence[float], slack: float) -> Course:
    """The course of samples at equal intervals. ``slack`` is the growth that counts as none, in their unit.

    Raises:
        ValueError: there are fewer than 16 samples.
    """
    if len(samples) < FEWEST:
        raise ValueError(f"{len(samples)} samples are too few; it takes {FEWEST}")
    cuts = [len(samples) * quarter // 4 for quarter in range(5)]
    first, second, third, last = (fmean(samples[cuts[i] : cuts[i + 1]]) for i in range(4))
    half = samples[cuts[2] :]
    slope = linear_regression(range(len(half)), half).slope
    return Course((first, second, third, last), last - second, slope * (len(half) - 1), second * SHARE + slack)
