"""A curve: what so much work costs, the slope of that, and whether it is steeper than it may be. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

TOLERANCE: Final = 0.15
"""Above what is expected of a slope: what noise makes of one, about."""
_END: Final = 3
"""Points whose slope is that of a curve's end: where costs that grow hide behind those that do not at first."""


@dataclass(frozen=True, slots=True)
class Curve:
    """What was measured. ``steepest`` is the slope on a log-log scale that is fine: 0 where the work does not depend on
    how much there is, 1 where each of it costs the same."""

    name: str
    work: str
    """What there is more and more of."""
    cost: str
    """What is measured, with its unit."""
    steepest: Literal[0, 1]
    points: Sequence[tuple[int, float]]

    @property
    def slope(self) -> float:
        """Of all points."""
        return slope(self.points)

    @property
    def slope_at_end(self) -> float:
        """Of the last points alone."""
        return slope(self.points[-_END:])

    @property
    def too_steep(self) -> bool:
        """Whether it grows faster than it may, as a whole or at its end."""
        return max(self.slope, self.slope_at_end) > self.steepest + TOLERANCE


def slope(points: Sequence[tuple[int, float]]) -> float:
    """Of the straight line that fits the logarithms best (least squares).

    Raises:
        ValueError: there are less than two points, or one is not above 0.
    """
    logs = [(math.log(work), math.log(cost)) for work, cost in points]
    if len(logs) < 2:
        raise ValueError("a slope needs two points")
    mean_x = math.fsum(x for x, _ in logs) / len(logs)
    mean_y = math.fsum(y for _, y in logs) / len(logs)
    spread = math.fsum((x - mean_x) ** 2 for x, _ in logs)
    return math.fsum((x - mean_x) * (y - mean_y) for x, y in logs) / spread
