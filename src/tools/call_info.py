"""What is known of a call by its id, whoever of its principal asks."""

from typing import Literal

import msgspec

from ..protocol.tool_call import Progress, ToolResult

CallState = Literal["waiting", "running", "ending", "done", "failed", "interrupted", "expired", "unknown"]
"""Of a call that has no answer yet the first three. ``interrupted``: the daemon ended while it ran, and nobody knows
its outcome. ``expired``: it has ended, and its result is not kept any more. ``unknown``: there is none of this id, it
is somebody else's, or it is too long ago."""


class CallInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One call. Times are Unix times and durations in seconds; what is not known is None."""

    id: str
    state: CallState
    tool: str | None = None
    started_at: float | None = None
    remaining_s: float | None = None
    """Until its deadline, while it has no answer."""
    progress: Progress | None = None
    outcome: str | None = None
    """``ok`` or an error's code, once it has ended."""
    result: ToolResult | None = None
    """Once it has ended, where it is kept under its id."""

    @property
    def under_way(self) -> bool:
        """It has no answer yet."""
        return self.state in {"waiting", "running", "ending"}
