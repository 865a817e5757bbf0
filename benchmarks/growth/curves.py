"""Cost curves: the cost by amount of work, its slope, and whether it is too steep. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

TOLERANCE: Final = 0.15
"""The excess over the limit that noise can cause, roughly."""
_END: Final = 3
"""The number of points at the end with a separate slope, which shows growth that starts late."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A measured curve. ``limit`` is the largest acceptable slope on a log-log scale: 0 for a constant cost, 1 for a
    linear one."""

    name: str
    work: str
    """The variable."""
    cost: str
    """The measured cost, with its unit."""
    limit: Literal[0, 1]
    points: Sequence[tuple[int, float]]

    @property
    def slope(self) -> float:
        """The slope of all points."""
        return slope(self.points)

    @property
    def slope_at_end(self) -> float:
        """The slope of the last points."""
        return slope(self.points[-_END:])

    @property
    def too_steep(self) -> bool:
        """Whether the slope exceeds the limit, overall or at the end."""
        return max(self.slope, self.slope_at_end) > self.limit + TOLERANCE


def slope(points: Sequence[tuple[int, float]]) -> float:
    """The slope of the least-squares line through the logarithms.

    Raises:
        ValueError: there are fewer than two points, or a value is not positive.
    """
    logs = [(math.log(work), math.log(cost)) for work, cost in points]
    if len(logs) < 2:
        raise ValueError("a slope needs two points")
    mean_x = math.fsum(x for x, _ in logs) / len(logs)
    mean_y = math.fsum(y for _, y in logs) / len(logs)
    spread = math.fsum((x - mean_x) ** 2 for x, _ in logs)
    return math.fsum((x - mean_x) * (y - mean_y) for x, y in logs) / spread
