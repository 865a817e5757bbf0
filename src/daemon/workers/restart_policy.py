"""Decides when an ended worker is restarted. Pure."""

from typing import Final

FIRST_DELAY_S: Final = 0.2
LONGEST_DELAY_S: Final = 10.0
STABLE_S: Final = 30.0
"""A worker that ran at least this long is restarted with the shortest delay."""


class RestartPolicy:
    """The restart delays of one worker: they double from ``FIRST_DELAY_S`` to ``LONGEST_DELAY_S`` while the worker
    keeps ending soon after its start.
    """

    def __init__(self) -> None:
        self._delay_s = FIRST_DELAY_S

    def delay_s(self, *, ran_s: float, fenced: bool) -> float:
        """The delay after a run of ``ran_s`` seconds; 0 for a ``fenced`` worker, which only lost its lease."""
        if ran_s >= STABLE_S:
            self._delay_s = FIRST_DELAY_S
        if fenced:
            return 0.0
        delay_s, self._delay_s = self._delay_s, min(2 * self._delay_s, LONGEST_DELAY_S)
        return delay_s
