"""The knee of throughput against concurrency: the point beyond which more concurrency stops paying. Pure."""

from collections.abc import Sequence
from typing import Final

MIN_POINTS: Final = 3
FLAT: Final = 0.1
"""As a share of the curve's height: a smaller bulge above the straight line does not count as a knee."""


def knee(points: Sequence[tuple[float, float]]) -> float | None:
    """The concurrency at which the curve bends most; ``points`` are (concurrency, throughput) in rising concurrency.

    That is the point farthest above a straight line from the first point to the last concurrency at the highest
    throughput, with both axes scaled to 1 (Satopää and others, 'Finding a Kneedle in a Haystack', 2011). None if there
    are fewer than three points, if the throughput never rises, or if it rises almost linearly: then the knee is farther
    out.
    """
    if len(points) < MIN_POINTS:
        return None
    (x_first, y_first), (x_last, _) = points[0], points[-1]
    y_top = max(y for _, y in points)
    if x_last <= x_first or y_top <= y_first:
        return None
    bulge, where = max(((y - y_first) / (y_top - y_first) - (x - x_first) / (x_last - x_first), -x) for x, y in points)
    return -where if bulge >= FLAT else None
