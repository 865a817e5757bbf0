"""Exponential backoff with equal jitter. Pure: the caller passes the random draw.

A pause has a fixed half and a random half. Full jitter would spread clients a little better, but allows pauses near
zero, which hammer a failing peer; and ``Retry-After`` needs a lower bound anyway.
"""

from typing import Final

_MAX_DOUBLINGS: Final = 16
"""Keeps ``2**attempt`` small. Every cap is reached much earlier."""


def backoff_s(attempt: int, draw: float, *, base_s: float, cap_s: float, at_least_s: float = 0.0) -> float:
    """Returns the seconds to wait before retry ``attempt`` (from 0): between half and all of a window that doubles each
    time.

    ``draw`` is a uniform random number in [0, 1). ``at_least_s``, such as a peer's Retry-After, replaces the fixed half
    if it is longer; the random half is still added, so that clients with the same value do not retry together.
    """
    half_s = min(base_s * 2.0 ** min(attempt, _MAX_DOUBLINGS), cap_s) / 2
    return max(half_s, at_least_s) + half_s * draw
