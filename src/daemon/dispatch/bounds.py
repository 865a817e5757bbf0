"""What dispatch keeps to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """Counts, bytes and seconds as the names say; all settable (docs/limits.md)."""

    max_running_per_session: int
    max_accepted_per_session: int
    max_waiting: int
    default_timeout_s: float
    max_timeout_s: float
    max_frame_bytes: int
    progress_interval_s: float
    progress_window_s: float
    """How long a session that nobody holds stays in memory, and a running call's last report is worth telling."""
    result_ttl_s: float
    max_kept_bytes: int
    """Of one principal's results."""
