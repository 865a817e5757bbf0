"""Whether a call is let in. Pure: numbers in, a refusal or None out."""

from typing import Final

from ...protocol.error_codes import CallError, InvalidArgumentsError, OverCapacityError

RETRY_AFTER_MS: Final = 500
"""When to come again: about as long as a few short calls take; the caller's own backoff does the rest."""

DETACHED_RETRY_AFTER_MS: Final = 10_000
"""The same for detached calls, which take longer."""


def too_many_waiting(waiting: int, max_waiting: int) -> OverCapacityError | None:
    """A call that would have to wait is refused at once where as many wait already as may."""
    if waiting < max_waiting:
        return None
    return OverCapacityError(
        f"{waiting} calls wait in this daemon already, which is its bound; send this one again later.",
        retry_after_ms=RETRY_AFTER_MS,
    )


def session_is_full(max_accepted: int) -> OverCapacityError:
    """What a session gets that has as many calls in flight as it may."""
    return OverCapacityError(
        f"This session has {max_accepted} calls in flight, which is its bound; wait for an answer first.",
        retry_after_ms=RETRY_AFTER_MS,
    )


def too_many_orchestrations(max_orchestrations: int) -> OverCapacityError:
    """The error for a session that has reached its limit of orchestration calls."""
    return OverCapacityError(
        f"This session is running {max_orchestrations} orchestration calls, which is its limit; wait for one of them.",
        retry_after_ms=RETRY_AFTER_MS,
    )


def detached_enough(max_detached: int) -> OverCapacityError:
    """What a principal gets that has as many detached calls as it may."""
    return OverCapacityError(
        f"{max_detached} detached calls of yours run or wait already, which is the bound; cancel_call ends one.",
        retry_after_ms=DETACHED_RETRY_AFTER_MS,
    )


def child_refusal(count: int, depth: int, *, max_children: int, max_depth: int) -> CallError | None:
    """Why a call may not make its ``count``-th call, which would make calls itself at ``depth``; 0: it makes none."""
    if count > max_children:
        return OverCapacityError(
            f"One call makes {max_children:,} calls at most, and this would be one more; give it less to do.",
            transient=False,
        )
    if depth > max_depth:
        return InvalidArgumentsError(
            f"Calls that make calls are nested {max_depth} deep at most; call what is meant with fewer tools around it."
        )
    return None


def deadline_s(wished_ms: float | None, tool_s: float, maximum_s: float) -> tuple[float, bool]:
    """A call's whole time in seconds, and whether the wish was lowered to the maximum."""
    if wished_ms is None:
        return min(tool_s, maximum_s), False
    wished_s = wished_ms / 1000
    return (maximum_s, True) if wished_s > maximum_s else (wished_s, False)
