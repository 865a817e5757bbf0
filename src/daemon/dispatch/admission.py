"""Admission: which calls are refused because of a limit, and a call's timeout. Pure."""

from typing import Final

from ...protocol.error_codes import CallError, InvalidArgumentsError, OverCapacityError, ServiceUnavailableError
from ...tools import Tool
from .dispatch_limits import DispatchLimits

RETRY_AFTER_MS: Final = 500
"""Approximately the time of a few short calls; the client's backoff increases it."""

DETACHED_RETRY_AFTER_MS: Final = 10_000
"""The same for detached calls, which take longer."""


def admission_refusal(
    tool: Tool,
    limits: DispatchLimits,
    *,
    closed: str | None,
    permit_free: bool,
    waiting: int,
    own_waiting: int,
    orchestrations: int,
    exceeded: str | None = None,
) -> CallError | None:
    """The refusal of a client's new call; None if it may run or wait.

    ``closed``: why the daemon accepts no calls. ``permit_free``: whether the session and the daemon have a free permit.
    ``waiting``: calls of the daemon that wait for a permit; ``own_waiting``: those of the principal (0 if it is the
    only one). ``orchestrations``: the session's running orchestration calls. ``exceeded``: whose limit for the bytes of
    requests the call would exceed.
    """
    if closed is not None:
        return ServiceUnavailableError.content_free(closed, executed="no")
    if exceeded is not None:
        return requests_exceed(exceeded)
    if tool.orchestration:
        limit = limits.max_orchestrations_per_session
        if orchestrations < limit:
            return None
        return OverCapacityError.content_free(
            f"{limit} orchestration calls of this session are running, its limit; wait for one of them.",
            retry_after_ms=RETRY_AFTER_MS,
        )
    if tool.unmetered or permit_free:
        return None
    share = waiting_share(limits.max_waiting)
    if own_waiting >= share:
        return OverCapacityError(
            f"{own_waiting} of your calls are already waiting, and one principal may have {share}; retry later.",
            retry_after_ms=RETRY_AFTER_MS,
        )
    if waiting < limits.max_waiting:
        return None
    return OverCapacityError.content_free(
        f"{waiting} calls are already waiting, the limit of this daemon; retry later.", retry_after_ms=RETRY_AFTER_MS
    )


def requests_exceed(limit: str) -> OverCapacityError:
    """The refusal of a call whose request exceeds a limit for the bytes of requests."""
    return OverCapacityError.content_free(
        f"With this call, the frames of calls in flight would exceed the limit of {limit}; wait for an "
        "answer first, or send less per call.",
        retry_after_ms=RETRY_AFTER_MS,
    )


def waiting_share(max_waiting: int) -> int:
    """How many calls of one principal may wait if there are several principals: three quarters of the limit."""
    return max(1, max_waiting * 3 // 4)


def session_is_full(max_accepted: int) -> OverCapacityError:
    """The refusal of a call beyond the session's limit of accepted calls."""
    return OverCapacityError.content_free(
        f"This session has {max_accepted} calls in flight, its limit; wait for an answer first.",
        retry_after_ms=RETRY_AFTER_MS,
    )


def too_many_detached(limit: int) -> OverCapacityError:
    """The refusal of a detached call beyond the principal's limit."""
    return OverCapacityError.content_free(
        f"You have {limit} detached calls running or waiting, the limit; cancel one with cancel_call or retry later.",
        retry_after_ms=DETACHED_RETRY_AFTER_MS,
    )


def too_many_paused(limit: int) -> OverCapacityError:
    """The error of a call that cannot pause because of the principal's limit."""
    return OverCapacityError.content_free(
        f"The call has to wait for a person, and you have {limit} paused calls, the limit; decide on them with "
        "agent_decide or cancel some, then send the call again.",
        executed="maybe",
    )


def limited_call() -> InvalidArgumentsError:
    """The refusal of a detached call whose creator is limited."""
    return InvalidArgumentsError.content_free(
        "An agent or another tool limits what this call may use and spend, and a detached call would outlive these "
        "limits; call the tool without detach."
    )


def child_refusal(count: int, *, max_children: int) -> CallError | None:
    """The refusal of a parent's ``count``-th child."""
    if count > max_children:
        return OverCapacityError.content_free(
            f"One call can make {max_children:,} child calls, and this would be one more; split the work.",
            transient=False,
        )
    return None


def timeout_s_of(requested_ms: float | None, tool_s: float, max_s: float) -> tuple[float, bool]:
    """A call's timeout in seconds, and whether the requested one was lowered to the maximum."""
    if requested_ms is None:
        return min(tool_s, max_s), False
    requested_s = requested_ms / 1000
    return (max_s, True) if requested_s > max_s else (requested_s, False)
