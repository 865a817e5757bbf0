"""Pairs of runs as blocks: permutation tests that swap sides, and the matching interval."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baseline.blocks import MIN_BLOCKS, chances, middle, rank_effect

effects = st.lists(st.floats(-1, 1), min_size=6, max_size=6)


def test_rank_effect_ranges_from_minus_one_to_one() -> None:
    """The rank effect is 1 if every later value is higher, -1 if every later value is lower, and 0 without a
    difference.
    """
    assert rank_effect([1, 2], [3, 4, 5]) == 1.0
    assert rank_effect([1, 2, 3], [1, 2, 3]) == 0.0
    assert rank_effect([1, 4], [2, 3]) == 0.0
    assert rank_effect([1, 2, 3, 4], [0, 0]) == -1.0


def test_minimum_number_of_blocks_can_be_significant() -> None:
    """Six blocks that agree have p = 1/32, whatever the number of tools; with five blocks p is above 5 %."""
    noise = {f"tool-{n}": [0.1, -0.1, 0.1, -0.1, 0.1, -0.1] for n in range(40)}
    assert chances({"slow": [1.0] * MIN_BLOCKS} | noise)["slow"] == 1 / 32
    assert chances({"slow": [1.0] * (MIN_BLOCKS - 1)})["slow"] > 0.05


def test_larger_effect_does_not_hide_a_smaller_one() -> None:
    """A tool with a smaller effect is found too, if its blocks agree."""
    found = chances({"a": [1.0] * 8, "b": [0.5] * 8, "c": [0.3, -0.3] * 4})
    assert found["a"] == found["b"] == 1 / 128
    assert found["c"] == 1.0


@given(st.lists(effects, min_size=2, max_size=6))
def test_more_tools_never_lower_p(rows: Sequence[list[float]]) -> None:
    """A tool's p among others is at least its p alone, and a greater effect never has a higher p."""
    found = chances(dict(enumerate(rows)))
    for number, row in enumerate(rows):
        assert chances({0: row})[0] <= found[number] <= 1
    effect = {number: round(abs(sum(row)), 6) for number, row in enumerate(rows)}
    assert all(found[a] <= found[b] for a in found for b in found if effect[a] > effect[b])


def test_upward_counts_one_direction() -> None:
    """With ``upward`` only increases count; all 64 ways in which six blocks can swap sides are tried."""
    assert chances({"more": [1.0] * 6, "none": [0.0] * 6}, upward=True)["more"] == 1 / 64
    assert chances({"fewer": [-1.0] * 6}, upward=True) == {"fewer": 1.0}


def test_many_blocks_are_sampled() -> None:
    """If there are too many blocks to enumerate, p is sampled, reproducibly, and is never 0."""
    rows = {"slow": [0.9] * 20, "same": [0.2, -0.2] * 10}
    assert chances(rows) == chances(rows)
    assert 0 < chances(rows)["slow"] < 0.001
    assert chances(rows)["same"] > 0.5


def test_synthetic_blocks_without_a_difference() -> None:
    """In 400 synthetic draws of 12 correlated tools without a difference, at most about one in twenty has a p of 0.05
    or less.
    """
    generator = np.random.default_rng(7)
    alarms = 0
    for _ in range(400):
        rows = generator.uniform(-1, 1, (12, 6)) + generator.uniform(-1, 1, 6)
        alarms += min(chances(dict(enumerate(rows.tolist()))).values()) <= 0.05
    assert alarms <= 30  # 20 are expected; the probability of more than 30 is 1 %


@pytest.mark.slow
@pytest.mark.parametrize("count", [6, 8, 15])
def test_interval_agrees_with_signed_rank_test(count: int) -> None:
    """The exact test rejects a shift just outside the interval at 5 %, and accepts one just inside."""
    from scipy.stats import wilcoxon  # type: ignore[import-untyped] # it has no types

    values = np.random.default_rng(count).normal(0.1, 0.3, count)
    found = middle(values.tolist())
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.value <= found.high
    for bound, outward in ((found.low, -1e-9), (found.high, 1e-9)):
        assert wilcoxon(values - bound - outward, method="exact").pvalue <= 0.05
        assert wilcoxon(values - bound + outward, method="exact").pvalue > 0.05


def test_interval_of_six_blocks_spans_all_values() -> None:
    """With the minimum number of blocks the interval reaches from the smallest to the largest value."""
    found = middle([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert (found.low, found.high) == (0.1, 0.6)
    assert found.value == pytest.approx(0.35)
