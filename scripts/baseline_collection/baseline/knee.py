"""Where more concurrency stops paying: the knee of throughput against concurrency. Pure."""

from collections.abc import Sequence
from typing import Final

MIN_POINTS: Final = 3
FLAT: Final = 0.1
"""Of the curve's height: a bulge above the straight line that is lower than this is no knee."""


def knee(points: Sequence[tuple[float, float]]) -> float | None:
    """The concurrency at which the curve bends most, of (concurrency, throughput) in rising concurrency.

    That is where it lies farthest above a straight line from its first point to its last concurrency at its highest
    throughput, both axes scaled to 1 (Satopää and others, 'Finding a Kneedle in a Haystack', 2011). None where there
    are fewer than three points, where the throughput never rises, or where it rises in nearly a straight line: the knee
    is farther out.
    """
    if len(points) < MIN_POINTS:
        return None
    (x_first, y_first), (x_last, _) = points[0], points[-1]
    y_top = max(y for _, y in points)
    if x_last <= x_first or y_top <= y_first:
        return None
    bulge, where = max(((y - y_first) / (y_top - y_first) - (x - x_first) / (x_last - x_first), -x) for x, y in points)
    return -where if bulge >= FLAT else None
