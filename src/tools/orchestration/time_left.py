"""How long the parts of a composing call have, so that it can still tell what was done when they are cut off."""

import time
from collections.abc import Callable
from typing import Final

ANSWER_S: Final = 1.5
"""Kept of the call's own time for its answer: a tool that does not end when it is told to is answered for after 1 s."""
ANSWER_SHARE: Final = 0.2
"""Of a short call it is at most this share."""
CALL_MARGIN_S: Final = 5.0
"""By so much the deadline of a call that names none is longer than what its parts may take at most."""


def time_left(timeout_s: float, call_left_s: float, clock: Callable[[], float] = time.monotonic) -> Callable[[], float]:
    """A function that says how many seconds the parts have from now on: ``timeout_s`` from the beginning, within what
    the call has left.
    """
    margin_s = min(ANSWER_S, call_left_s * ANSWER_SHARE)
    until = clock() + min(timeout_s, call_left_s - margin_s)
    return lambda: max(0.0, until - clock())
