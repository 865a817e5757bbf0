"""The state of a call, as its principal can look it up by id."""

from typing import Literal

import msgspec

from ..protocol.tool_call import Progress, ToolResult

CallState = Literal["waiting", "running", "ending", "done", "failed", "interrupted", "expired", "unknown"]
"""The first three: no answer yet. ``interrupted``: the daemon ended while it ran, and the outcome is unknown.
``expired``: it has ended, and its result is no longer stored. ``unknown``: the id does not exist, belongs to another
principal, or is too old."""


class CallInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One call. Times are Unix times and durations in seconds; unknown values are None."""

    id: str
    state: CallState
    tool: str | None = None
    started_at: float | None = None
    remaining_s: float | None = None
    """Seconds until its deadline, while it has no answer."""
    progress: Progress | None = None
    outcome: str | None = None
    """``ok`` or an error code, after it has ended."""
    result: ToolResult | None = None
    """After it has ended, if it is stored under its id."""

    @property
    def is_unfinished(self) -> bool:
        """Whether it has no answer yet."""
        return self.state in {"waiting", "running", "ending"}
