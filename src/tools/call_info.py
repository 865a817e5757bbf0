"""The state of a call, which its principal can look up by id."""

from typing import Final, Literal

import msgspec

from ..protocol.error_codes import NotFoundError
from ..protocol.input_request import InputRequest
from ..protocol.tool_call import Progress, ToolResult

SHOWN_ID_CHARS: Final = 120
"""Messages shorten longer ids."""

CallState = Literal["waiting", "running", "ending", "paused", "done", "failed", "interrupted", "expired", "unknown"]
"""The first four: no answer yet; ``paused``: it waits for a person. ``interrupted``: the daemon ended while it ran, and
the outcome is unknown. ``expired``: it has ended, and its result is no longer stored. ``unknown``: the id does not
exist, belongs to another principal, or is too old."""


class CallInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One call. Times are Unix times and durations in seconds; unknown values are None."""

    id: str
    state: CallState
    tool: str | None = None
    started_at: float | None = None
    remaining_s: float | None = None
    """Seconds until its deadline, while it has no answer."""
    progress: Progress | None = None
    requests: tuple[InputRequest, ...] = ()
    """Its requests to a person, while it is paused."""
    expires_at: float | None = None
    """When the requests expire, while it is paused."""
    outcome: str | None = None
    """``ok`` or an error code, after it has ended."""
    result: ToolResult | None = None
    """The result, after the call has ended, if it is stored under the call's id."""

    @property
    def is_unfinished(self) -> bool:
        """Whether it has no answer yet."""
        return self.state in {"waiting", "running", "ending", "paused"}


def unknown_call(call_id: str) -> NotFoundError:
    """Returns the error for a call that a principal does not have, or no longer has."""
    return NotFoundError(
        f"You have no call {call_id[:SHOWN_ID_CHARS]!r}, or it is too old; `activity` lists your running and recent "
        "calls."
    )
