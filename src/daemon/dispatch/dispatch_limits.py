"""What dispatch keeps to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DispatchLimits:
    """Counts, bytes and seconds as the names say; all settable (docs/limits.md)."""

    max_running_per_session: int
    max_accepted_per_session: int
    max_waiting: int
    max_orchestrations_per_session: int
    max_depth: int
    """Of calls that make calls, from a caller's own down."""
    max_children: int
    """Of one call; a detached one makes any number."""
    max_detached: int
    """Of one principal, at a time."""
    default_timeout_s: float
    max_timeout_s: float
    max_frame_bytes: int
    spill_bytes: int | None
    """An answer that is larger goes into a file; None: only what does not fit into a frame."""
    progress_interval_s: float
    progress_window_s: float
    """How long a session that nobody holds stays in memory, and a running call's last report is worth telling."""
    result_ttl_s: float
    max_kept_bytes: int
    """Of one principal's results."""

    @property
    def answer_bytes(self) -> int:
        """An answer that is larger is not sent."""
        return self.max_frame_bytes if self.spill_bytes is None else min(self.max_frame_bytes, self.spill_bytes)
