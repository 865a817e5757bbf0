"""Statistics of pairs of alternating runs, robust against other load on the machine. Pure.

Calls of one run share its process and the machine's state, so they are not independent trials of a version. The unit
is the pair of runs, a block. Within a block, calls are ranked against each other; between blocks the only assumption is
that two equal daemons could have been labelled the other way round (decision 48).
"""

from collections.abc import Hashable, Mapping, Sequence
from itertools import product
from typing import Final, TypeVar

import numpy as np

from .intervals import CONFIDENCE, Floats
from .record import Estimate

MIN_BLOCKS: Final = 6
"""Six blocks allow 32 distinct labellings, so the smallest p-value is 0.031; with five blocks it is 0.063."""
_COUNTED: Final = 13
"""Up to this many blocks every labelling is enumerated; beyond, labellings are sampled."""
_DRAWN: Final = 10_000
_SEED: Final = 20260101

Name = TypeVar("Name", bound=Hashable)


def rank_effect(before: Sequence[float], after: Sequence[float]) -> float:
    """Cliff's delta, from -1 to 1: how much more often a value of ``after`` is higher than lower."""
    old, new = (np.asarray(values, dtype=np.float64) for values in (before, after))
    return float(np.sign(new[:, None] - old[None, :]).mean())


def chances(blocks: Mapping[Name, Sequence[float]], *, upward: bool = False) -> dict[Name, float]:
    """The p-value of each name under random labelling of the sides of each block, corrected for the number of names
    (Westfall and Young's step-down, 1993).

    Each name has one value per block; swapping the sides of a block flips its sign. With ``upward`` only means above 0
    count.
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
    """Signs, one row per labelling; the first one swaps nothing. If the direction does not matter, half of the
    labellings mirror the other half and are omitted.
    """
    if blocks <= _COUNTED:
        free = blocks if upward else blocks - 1
        return np.array([(*[1.0] * (blocks - free), *signs) for signs in product((1.0, -1.0), repeat=free)])
    drawn = np.random.default_rng(_SEED).choice((1.0, -1.0), size=(_DRAWN, blocks))
    drawn[0] = 1.0
    return drawn


def middle(values: Sequence[float]) -> Estimate:
    """The Hodges-Lehmann estimate (1963) of at least ``MIN_BLOCKS`` values, with the 95 % interval of the signed-rank
    test. It assumes a symmetric distribution of any form.
    """
    array = np.asarray(values, dtype=np.float64)
    first, second = np.triu_indices(len(array))
    averages = np.sort((array[first] + array[second]) / 2)
    outside = _critical(len(array))
    return Estimate(value=float(np.median(averages)), low=float(averages[outside]), high=float(averages[~outside]))


def _critical(blocks: int) -> int:
    """The number of pair averages outside the interval on either side."""
    ways = np.zeros(blocks * (blocks + 1) // 2 + 1)
    ways[0] = 1.0
    for rank in range(1, blocks + 1):  # with and without this rank in the sum
        ways[rank:] = ways[rank:] + ways[:-rank]
    below = np.cumsum(ways / ways.sum())
    return max(0, int(np.searchsorted(below, (1 - CONFIDENCE) / 2, side="right")) - 1)
