"""The circuit breaker: refuses requests to a failing vendor at once, except occasional probes. Pure.

``counts_against_vendor`` decides which failures count. An error response (wrong key, rate limit, bad request) shows
that the vendor works, and counts as success.
"""

from dataclasses import dataclass
from typing import Final, Literal

from ..protocol.error_codes import CallTimeoutError, ServiceUnavailableError

FAILURES_TO_OPEN: Final = 5
"""Consecutive failures after which requests are refused."""
FIRST_PAUSE_S: Final = 15.0
"""Time until the first probe."""
LONGEST_PAUSE_S: Final = 120.0
"""Each failed probe doubles the pause, up to this limit."""

MIN_SILENCE_S: Final = 20.0
"""A timeout counts only if the vendor was silent for this long. A caller's short deadline, or a long answer that is
still streaming, must not open the circuit for others.
"""

BreakerState = Literal["closed", "open", "half-open"]


@dataclass(slots=True)
class CircuitBreaker:
    """The breaker of one vendor. ``now`` is a monotonic clock in seconds.

    Every admitted request reports its outcome. A probe without a report expires after the pause, so the breaker never
    stays blocked.
    """

    failures: int = 0
    """Consecutive failures."""
    pause_s: float = FIRST_PAUSE_S
    """The current or next pause."""
    answered_at: float | None = None
    """The time of the vendor's last answer; None if it has not answered yet."""
    _closed: bool = True
    _refuse_until: float = 0.0
    """The time of the next probe, unless the breaker is closed."""
    _probing: bool = False

    def state(self, now: float) -> BreakerState:
        """The state for displays: closed, open, or half-open if a probe runs or may start."""
        if self._closed:
            return "closed"
        return "half-open" if self._probing or now >= self._refuse_until else "open"

    def admit(self, now: float) -> float | None:
        """Returns None if the request may proceed, else the seconds until the next attempt."""
        if self._closed:
            return None
        if now < self._refuse_until:
            return self._refuse_until - now
        self._probing = True
        self._refuse_until = now + self.pause_s
        return None

    def record_success(self, now: float) -> None:
        """Records that the vendor responded, possibly with an error response."""
        self.answered_at = now
        self.failures = 0
        self.pause_s = FIRST_PAUSE_S
        self._closed = True
        self._probing = False

    def record_failure(self, now: float) -> None:
        """Records that the vendor was down or did not answer in time.

        While the breaker is open without a probe, the failure belongs to an earlier request and changes nothing.
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
        """Records that the request was cancelled, so its outcome is unknown. If it was the probe, the next may start at
        once.
        """
        if self._probing:
            self._probing = False
            self._refuse_until = now


def counts_against_vendor(error: Exception) -> bool:
    """Whether an error suggests that the vendor is down."""
    if isinstance(error, CallTimeoutError):
        silent_s: float = (error.details or {}).get("silent_s", MIN_SILENCE_S)
        return silent_s >= MIN_SILENCE_S
    return isinstance(error, ServiceUnavailableError)
