"""When a server is away: why, and when it is tried again. Pure."""

import random
from typing import Final

from ...protocol.error_codes import ServiceUnavailableError
from ..one_line import one_line

FIRST_PAUSE_S: Final = 0.5
MAX_PAUSE_S: Final = 60.0


class UpstreamUnavailableError(Exception):
    """The server cannot be used at present; the message says why, without the server's name."""


def pause_before(attempt: int) -> float:
    """Seconds before a server is tried again, the first time at ``attempt`` 0: twice as long each time, and up to half
    of it off, so that servers that went down together do not come up so.
    """
    longest = min(FIRST_PAUSE_S * 2.0 ** min(attempt, 16), MAX_PAUSE_S)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads the load, guards nothing


def explained(error: BaseException) -> str:
    """Why it did not work, from what the SDK raised: the first cause in its groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, UpstreamUnavailableError):
        return str(error)
    if isinstance(error, FileNotFoundError):
        return f"its command, or the directory it is to run in, is not there ({error.filename})"
    if isinstance(error, OSError):
        return f"it cannot be started or reached ({error.strerror or type(error).__name__})"
    return f"it cannot be used ({type(error).__name__}: {one_line(str(error), 300)})"


def unavailable(source: str, problem: str, again_in_s: float) -> ServiceUnavailableError:
    """The answer to a call of a server that is away: at once, and nothing was sent."""
    wait_ms = max(100, round(again_in_s * 1000))
    why = problem.rstrip(".")
    return ServiceUnavailableError(
        f"{source} is not available: {why}. It is tried again by itself.", executed="no", retry_after_ms=wait_ms
    )
