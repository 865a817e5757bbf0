"""When a worker that has ended is started again. Pure."""

from typing import Final

FIRST_DELAY_S: Final = 0.2
LONGEST_DELAY_S: Final = 10.0
STABLE_S: Final = 30.0
"""A worker that has run so long begins again with the shortest delay."""


class RestartPolicy:
    """The delays of one worker, doubled from ``FIRST_DELAY_S`` to ``LONGEST_DELAY_S`` while it keeps ending soon."""

    def __init__(self) -> None:
        self._delay_s = FIRST_DELAY_S

    def delay_s(self, *, ran_s: float, fenced: bool) -> float:
        """The time to wait after a run of ``ran_s`` seconds. A worker that was ``fenced`` has only lost its lease."""
        if ran_s >= STABLE_S:
            self._delay_s = FIRST_DELAY_S
        if fenced:
            return 0.0
        delay_s, self._delay_s = self._delay_s, min(2 * self._delay_s, LONGEST_DELAY_S)
        return delay_s
