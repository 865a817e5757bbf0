"""Verdicts: their conditions, and the correction for many tools."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baseline.record import Estimate, Load
from baseline.verdicts import Options, decide, effect_in_words, holm

ONE = Load(concurrency=1)


@pytest.mark.parametrize(
    ("ratio", "p", "verdict"),
    [
        (Estimate(value=1.3, low=1.2, high=1.4), 0.01, "slower"),
        (Estimate(value=0.7, low=0.6, high=0.8), 0.01, "faster"),
        (Estimate(value=1.3, low=1.2, high=1.4), 0.06, "not enough data"),
        (Estimate(value=1.3, low=0.9, high=1.6), 0.01, "not enough data"),
        (Estimate(value=1.09, low=1.05, high=1.12), 0.001, "not enough data"),
        (Estimate(value=1.05, low=1.02, high=1.08), 0.001, "same"),
        (Estimate(value=1.0, low=0.95, high=1.05), 0.9, "same"),
    ],
)
def test_verdict_needs_test_interval_and_threshold(ratio: Estimate, p: float, verdict: str) -> None:
    """'slower' and 'faster' need all three; 'same' needs the whole interval to be within the threshold."""
    assert decide(ratio, p, 30, "calls", Options(threshold=0.1))[0] == verdict


def test_reason_estimates_the_needed_calls() -> None:
    """If the interval is too wide, the reason says how many calls would be enough."""
    _, because = decide(Estimate(value=1.0, low=0.7, high=1.4), 0.5, 30, "calls", Options(threshold=0.1))
    assert "about 1600 calls are needed" in because


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm_only_raises_and_keeps_the_order(ps: Sequence[float]) -> None:
    """A corrected p is at least the original, at most 1, and the order is kept."""
    given_ps = {(str(n), ONE): p for n, p in enumerate(ps)}
    corrected = holm(given_ps)
    assert all(p <= corrected[key] <= 1 for key, p in given_ps.items())
    assert sorted(given_ps, key=lambda key: (given_ps[key], key)) == sorted(
        corrected, key=lambda key: (corrected[key], given_ps[key], key)
    )


def test_holm_example() -> None:
    """The smallest of three is tripled, the next is doubled, and none is below the previous one."""
    corrected = holm({("a", ONE): 0.01, ("b", ONE): 0.04, ("c", ONE): 0.03})
    assert [round(corrected[name, ONE], 3) for name in "abc"] == [0.03, 0.06, 0.06]


@pytest.mark.parametrize(("delta", "word"), [(0.1, "negligible"), (-0.2, "small"), (0.4, "medium"), (-0.9, "large")])
def test_effects_in_words(delta: float, word: str) -> None:
    """Cliff's delta has its authors' terms, for either sign."""
    assert effect_in_words(delta) == word
