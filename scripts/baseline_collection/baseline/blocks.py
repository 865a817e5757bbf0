"""What pairs of runs by turns tell of a difference, whatever else the machine did. Pure.

Calls of one run share its process and what the machine did meanwhile, so they are no independent trials of a version:
the unit is the pair of runs, a block. Within a block calls are ranked against each other; between blocks nothing is
taken for granted but that two equal daemons could have been named the other way round (decision 48).
"""

from collections.abc import Hashable, Mapping, Sequence
from itertools import product
from typing import Final, TypeVar

import numpy as np

from .intervals import CONFIDENCE, Floats
from .record import Estimate

MIN_BLOCKS: Final = 6
"""With six there are 32 ways to name the sides that differ, and the least chance is 0.031; with five it is 0.063."""
_COUNTED: Final = 13
"""Up to so many blocks every way is counted; with more, ways are drawn."""
_DRAWN: Final = 10_000
_SEED: Final = 20260101

Name = TypeVar("Name", bound=Hashable)


def rank_effect(before: Sequence[float], after: Sequence[float]) -> float:
    """Cliff's delta: how much oftener a value of after is the higher one than the lower one, from -1 to 1."""
    old, new = (np.asarray(values, dtype=np.float64) for values in (before, after))
    return float(np.sign(new[:, None] - old[None, :]).mean())


def chances(blocks: Mapping[Name, Sequence[float]], *, upward: bool = False) -> dict[Name, float]:
    """For each name the chance that naming the sides of each block by lot gives such a mean, or one farther from 0,
    to any name that has none greater: corrected for their number (Westfall and Young's step-down, 1993).

    All names have a value for each block, whose sign turns where its sides are swapped. ``upward`` counts means above
    0 alone.
    """
    if not blocks:
        return {}
    values = np.array(list(blocks.values()), dtype=np.float64)
    means = values @ _ways(values.shape[1], upward=upward).T / values.shape[1]
    if not upward:
        means = np.abs(means)
    seen = means[:, 0]
    names, found, largest = list(blocks), dict.fromkeys(blocks, 1.0), 0.0
    falling = np.argsort(-seen, kind="stable")
    for place, row in enumerate(falling):
        top = means[falling[place:]].max(axis=0)
        largest = max(largest, float(np.mean(top >= seen[row] - 1e-9)))
        found[names[row]] = largest
    return found


def _ways(blocks: int, *, upward: bool) -> Floats:
    """Signs, one row a way, the first of which swaps nothing. Where the direction does not count, half of all ways are
    the other half's mirror image."""
    if blocks <= _COUNTED:
        free = blocks if upward else blocks - 1
        return np.array([(*[1.0] * (blocks - free), *signs) for signs in product((1.0, -1.0), repeat=free)])
    drawn = np.random.default_rng(_SEED).choice((1.0, -1.0), size=(_DRAWN, blocks))
    drawn[0] = 1.0
    return drawn


def middle(values: Sequence[float]) -> Estimate:
    """The middle of what blocks say, and the interval of 95 % that goes with the signed-rank test (Hodges and Lehmann,
    1963): of at least ``MIN_BLOCKS`` values, whose distribution is symmetric and may have any form."""
    array = np.asarray(values, dtype=np.float64)
    first, second = np.triu_indices(len(array))
    averages = np.sort((array[first] + array[second]) / 2)
    outside = _critical(len(array))
    return Estimate(value=float(np.median(averages)), low=float(averages[outside]), high=float(averages[~outside]))


def _critical(blocks: int) -> int:
    """How many averages of pairs lie outside the interval on either side."""
    ways = np.zeros(blocks * (blocks + 1) // 2 + 1)
    ways[0] = 1.0
    for rank in range(1, blocks + 1):  # with this rank among the sum, and without
        ways[rank:] = ways[rank:] + ways[:-rank]
    below = np.cumsum(ways / ways.sum())
    return max(0, int(np.searchsorted(below, (1 - CONFIDENCE) / 2, side="right")) - 1)
