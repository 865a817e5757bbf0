"""The limits of dispatch."""

from dataclasses import dataclass

from .held_bytes import ByteLimits


@dataclass(frozen=True, slots=True)
class DispatchLimits:
    """The limits of dispatch, in the units that their names say; all are settings (docs/limits.md)."""

    max_running_per_session: int
    max_accepted_per_session: int
    max_waiting: int
    max_orchestrations_per_session: int
    max_depth: int
    """Nesting depth of orchestration calls; a client's call has depth 1."""
    max_agent_depth: int
    """The nesting depth of agents that call each other; a client's agent has depth 1. Agents do not count as
    orchestration calls.
    """
    max_children: int
    """Child calls of one call; a detached call has no such limit."""
    max_detached: int
    """Detached calls of one principal at a time."""
    max_paused: int
    """Paused calls of one principal at a time."""
    agents_keep_days: int
    """How long a run may stay unfinished after its first pause."""
    default_timeout_s: float
    max_timeout_s: float
    question_timeout_s: float
    """How long a question to a client waits for its answer."""
    max_frame_bytes: int
    spill_bytes: int | None
    """A larger answer is spilled to a file; None: only answers that do not fit into a frame are spilled."""
    progress_interval_s: float
    progress_window_s: float
    """How long a session without a connection stays in memory, and how long a call's last report stays current."""
    result_ttl_s: float
    max_cached_result_bytes: int
    """Size of one principal's cached results."""
    max_cached_result_bytes_total: int
    """Size of all principals' cached results, beyond which results spill to files."""
    unread_bytes: ByteLimits
    """Answers that their clients have not read."""
    request_bytes: ByteLimits
    """Calls without an answer, by the size of their frames."""

    @property
    def answer_bytes(self) -> int:
        """The size of the largest answer that is sent."""
        return self.max_frame_bytes if self.spill_bytes is None else min(self.max_frame_bytes, self.spill_bytes)
