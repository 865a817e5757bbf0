"""The pass rate of a case, with its confidence interval. Pure."""

from math import sqrt
from typing import Final, NamedTuple

Z_95: Final = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution: two-sided 95 %."""


class PassRate(NamedTuple):
    """Passed runs of all runs, with the interval in which the true rate lies with 95 % confidence."""

    passed: int
    runs: int
    rate: float
    low: float
    high: float


def pass_rate(passed: int, runs: int) -> PassRate:
    """The rate with its interval."""
    return PassRate(passed, runs, passed / runs if runs else 0.0, *wilson_interval(passed, runs))


def wilson_interval(passed: int, runs: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson's score interval for a proportion; (0, 1) without runs.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal of the
    American Statistical Association 22 (1927), 209-212. With p = passed / runs, its bounds are the two solutions of
    (p - x)² = z² x (1 - x) / runs. Unlike p ± z·sqrt(p (1 - p) / runs), it stays within 0 and 1, and has a positive
    width even if all runs passed.
    """
    if not 0 <= passed <= runs:
        raise ValueError(f"{passed} of {runs} runs cannot have passed")
    if runs == 0:
        return 0.0, 1.0
    rate, square = passed / runs, z * z
    centre = (rate + square / (2 * runs)) / (1 + square / runs)
    half = z * sqrt(rate * (1 - rate) / runs + square / (4 * runs * runs)) / (1 + square / runs)
    # Exact at 0 and 1, where the formula would have a rounding error.
    return (0.0 if passed == 0 else centre - half), (1.0 if passed == runs else centre + half)
