"""Combines rankings by reciprocal rank fusion. Pure."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Final, TypeVar

RANK_CONSTANT: Final = 60
"""Controls how slowly a score falls with the rank. The value of Cormack, Clarke and Büttcher (SIGIR 2009), who proposed
the method.
"""

_Id = TypeVar("_Id", bound=Hashable)


def fused_scores(rankings: Sequence[Sequence[_Id]]) -> Mapping[_Id, float]:
    """The score of each id, best first: the sum of 1 / (60 + rank) over the rankings, with ranks from 1."""
    scores: dict[_Id, float] = {}
    for ranking in rankings:
        for rank, each in enumerate(ranking, start=1):
            scores[each] = scores.get(each, 0.0) + 1.0 / (RANK_CONSTANT + rank)
    return dict(sorted(scores.items(), key=lambda item: -item[1]))
