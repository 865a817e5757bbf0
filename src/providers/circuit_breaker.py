"""The circuit breaker: a vendor that keeps failing is answered for at once, with a probe now and then. Pure.

``counts_against_vendor`` says which failures to feed it. A refusal (wrong key, rate limit, bad request) is an answer,
and counts as success.
"""

from dataclasses import dataclass
from typing import Final, Literal

from ..protocol.error_codes import CallTimeoutError, ServiceUnavailableError

FAILURES_TO_OPEN: Final = 5
"""Failures in a row after which calls are refused."""
FIRST_PAUSE_S: Final = 15.0
"""How long they are refused before a probe goes through."""
LONGEST_PAUSE_S: Final = 120.0
"""Each failed probe doubles the pause, up to this."""

PATIENCE_S: Final = 20.0
"""A time-out says something of the vendor only where it was silent for so long: a caller with a short deadline, or a
long answer that was still streaming, must not shut the vendor for everybody else."""

BreakerState = Literal["closed", "open", "half-open"]


@dataclass(slots=True)
class CircuitBreaker:
    """One vendor's. ``now`` is any clock that never goes back, in seconds.

    Whoever is admitted reports what came of it. A probe that nobody reports on is given up after the pause, so the
    breaker never waits for ever.
    """

    failures: int = 0
    """In a row."""
    pause_s: float = FIRST_PAUSE_S
    """How long the breaker refuses, or would."""
    answered_at: float | None = None
    """When the vendor last answered; None: it has not yet."""
    _closed: bool = True
    _refuse_until: float = 0.0
    """While not closed: when the next probe may go."""
    _probing: bool = False

    def state(self, now: float) -> BreakerState:
        """For status displays: closed, open, or half-open where a probe runs or may go."""
        if self._closed:
            return "closed"
        return "half-open" if self._probing or now >= self._refuse_until else "open"

    def admit(self, now: float) -> float | None:
        """None: go ahead. A number: refuse, and say that it may be tried again in so many seconds."""
        if self._closed:
            return None
        if now < self._refuse_until:
            return self._refuse_until - now
        self._probing = True
        self._refuse_until = now + self.pause_s
        return None

    def record_success(self, now: float) -> None:
        """The vendor answered, if only with a refusal."""
        self.answered_at = now
        self.failures = 0
        self.pause_s = FIRST_PAUSE_S
        self._closed = True
        self._probing = False

    def record_failure(self, now: float) -> None:
        """The vendor was down, or did not answer in time.

        While the breaker is open and no probe runs, this is a call that was admitted before: it changes nothing.
        """
        self.failures += 1
        if self._closed:
            if self.failures < FAILURES_TO_OPEN:
                return
            self._closed = False
        elif self._probing:
            self._probing = False
            self.pause_s = min(LONGEST_PAUSE_S, self.pause_s * 2)
        else:
            return
        self._refuse_until = now + self.pause_s

    def record_cancelled(self, now: float) -> None:
        """The caller went away first, so nobody knows. If that was the probe, another may go at once."""
        if self._probing:
            self._probing = False
            self._refuse_until = now


def counts_against_vendor(error: Exception) -> bool:
    """Whether a provider's error means that its vendor is down."""
    if isinstance(error, CallTimeoutError):
        silent_s: float = (error.details or {}).get("silent_s", PATIENCE_S)
        return silent_s >= PATIENCE_S
    return isinstance(error, ServiceUnavailableError)
