"""Whether a call is let in. Pure: numbers in, a refusal or None out."""

from typing import Final

from ...protocol.errors import OverCapacityError

RETRY_AFTER_MS: Final = 500
"""When to come again: about as long as a few short calls take; the caller's own backoff does the rest."""


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


def deadline_s(wished_ms: float | None, tool_s: float, maximum_s: float) -> tuple[float, bool]:
    """A call's whole time in seconds, and whether the wish was lowered to the maximum."""
    if wished_ms is None:
        return min(tool_s, maximum_s), False
    wished_s = wished_ms / 1000
    return (maximum_s, True) if wished_s > maximum_s else (wished_s, False)
