"""Pairs of runs as trials: chances by swapping sides, and the interval that goes with them."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wilcoxon  # type: ignore[import-untyped] # it has no types

from baseline.blocks import MIN_BLOCKS, chances, middle, rank_effect

effects = st.lists(st.floats(-1, 1), min_size=6, max_size=6)


def test_the_rank_effect() -> None:
    """It is 1 where every later value is higher, 0 where there is no difference, and says how often otherwise."""
    assert rank_effect([1, 2], [3, 4, 5]) == 1.0
    assert rank_effect([1, 2, 3], [1, 2, 3]) == 0.0
    assert rank_effect([1, 4], [2, 3]) == 0.0
    assert rank_effect([1, 2, 3, 4], [0, 0]) == -1.0


def test_the_least_number_of_blocks_can_be_significant() -> None:
    """Where six blocks agree, the chance is 1 of 32 ways, whatever the number of tools; of five it is above 5 %."""
    noise = {f"tool-{n}": [0.1, -0.1, 0.1, -0.1, 0.1, -0.1] for n in range(40)}
    assert chances({"slow": [1.0] * MIN_BLOCKS} | noise)["slow"] == 1 / 32
    assert chances({"slow": [1.0] * (MIN_BLOCKS - 1)})["slow"] > 0.05


def test_all_that_are_slower_are_found() -> None:
    """A tool with a smaller effect than another is not hidden by it, as long as its blocks agree."""
    found = chances({"a": [1.0] * 8, "b": [0.5] * 8, "c": [0.3, -0.3] * 4})
    assert found["a"] == found["b"] == 1 / 128
    assert found["c"] == 1.0


@given(st.lists(effects, min_size=2, max_size=6))
def test_more_tools_never_lower_a_chance(rows: Sequence[list[float]]) -> None:
    """A tool's chance among others is at least what it is alone, and that of a greater effect is never higher."""
    found = chances(dict(enumerate(rows)))
    for number, row in enumerate(rows):
        assert chances({0: row})[0] <= found[number] <= 1
    effect = {number: round(abs(sum(row)), 6) for number, row in enumerate(rows)}
    assert all(found[a] <= found[b] for a in found for b in found if effect[a] > effect[b])


def test_upward_counts_one_direction() -> None:
    """Fewer failures are no alarm, and more are one, with all 64 ways of six blocks to swap sides."""
    assert chances({"more": [1.0] * 6, "none": [0.0] * 6}, upward=True)["more"] == 1 / 64
    assert chances({"fewer": [-1.0] * 6}, upward=True) == {"fewer": 1.0}


def test_many_blocks_are_drawn() -> None:
    """With more blocks than can be counted the chance is drawn, the same each time, and never 0."""
    rows = {"slow": [0.9] * 20, "same": [0.2, -0.2] * 10}
    assert chances(rows) == chances(rows)
    assert 0 < chances(rows)["slow"] < 0.001
    assert chances(rows)["same"] > 0.5


def test_synthetic_blocks_without_a_difference() -> None:
    """Of 400 draws of 12 tools without a difference (synthetic, tools moving together), one in twenty has a tool below
    0.05, which is what is promised."""
    generator = np.random.default_rng(7)
    alarms = 0
    for _ in range(400):
        rows = generator.uniform(-1, 1, (12, 6)) + generator.uniform(-1, 1, 6)
        alarms += min(chances(dict(enumerate(rows.tolist()))).values()) <= 0.05
    assert alarms <= 30  # 20 are expected; more than 30 has a chance of 1 %


@pytest.mark.parametrize("count", [6, 8, 15])
def test_the_interval_is_that_of_the_signed_rank_test(count: int) -> None:
    """A shift just outside the interval is refused by the exact test at 5 %, and one just inside is not."""
    values = np.random.default_rng(count).normal(0.1, 0.3, count)
    found = middle(values.tolist())
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.value <= found.high
    for bound, outward in ((found.low, -1e-9), (found.high, 1e-9)):
        assert wilcoxon(values - bound - outward, method="exact").pvalue <= 0.05
        assert wilcoxon(values - bound + outward, method="exact").pvalue > 0.05


def test_six_blocks_reach_from_the_least_to_the_greatest() -> None:
    """With the least number of blocks nothing lies outside."""
    found = middle([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert (found.low, found.high) == (0.1, 0.6)
    assert found.value == pytest.approx(0.35)
