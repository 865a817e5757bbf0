"""What an API's failures mean to the caller, and which are tried again. Pure."""

import random
from datetime import datetime
from typing import Any, Final

import msgspec

from ...protocol.backoff import backoff_s
from ...protocol.error_codes import (
    CallError,
    CallTimeoutError,
    Executed,
    InvalidArgumentsError,
    NotFoundError,
    PermissionDeniedError,
    ProviderError,
    RateLimitedError,
    ServiceUnavailableError,
)
from ...protocol.retry_after import retry_after_ms
from ..source import secret_rejected

IDEMPOTENT: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
"""Methods that may be sent again (RFC 9110, 9.2.2)."""

_FIRST_PAUSE_S: Final = 0.5
_MAX_PAUSE_S: Final = 60.0
_LEAST_S: Final = 0.2
"""With less time left nothing is asked: the answer would come too late."""
_MAX_DETAILS_BYTES: Final = 4096
_NOT_IMPLEMENTED: Final = frozenset({501, 505})


def refused(source: str, status: int, said: str, value: Any, retry_after: str | None, now: datetime) -> CallError:
    """The API answered with an error: ``said`` in words, and ``value`` its JSON where it was some."""
    named = f"{source} answered HTTP {status}" + (f": {said}" if said else "")
    details: dict[str, Any] = {"status": status}
    if value is not None and len(msgspec.json.encode(value)) <= _MAX_DETAILS_BYTES:
        details["answer"] = value
    wait_ms = retry_after_ms(retry_after, now)
    if status in {400, 422}:
        return InvalidArgumentsError(f"{named}.", details=details)
    if status == 401:
        return PermissionDeniedError(f"{named}. {secret_rejected(source)}", details=details)
    if status == 403:
        return PermissionDeniedError(f"{named}.", details=details)
    if status in {404, 410}:
        return NotFoundError(f"{named}.", details=details)
    if status == 429:
        return RateLimitedError(f"{named}.", retry_after_ms=wait_ms, details=details)
    if status == 408 or (status >= 500 and status not in _NOT_IMPLEMENTED):
        return ServiceUnavailableError(f"{named}.", executed="maybe", retry_after_ms=wait_ms, details=details)
    return ProviderError(f"{named}.", executed="no", details=details)


def redirected(source: str, status: int, why: str, *, executed: Executed) -> ProviderError:
    """The API sent the request elsewhere, where it does not go."""
    return ProviderError(f"{source} answered HTTP {status}, a redirect, and {why}.", executed=executed)


def forbidden(source: str, why: str) -> PermissionDeniedError:
    """The request would go where the operator allows none."""
    return PermissionDeniedError(f"{source}: {why}.", executed="no")


def unsendable(source: str, *, sent: bool) -> ProviderError:
    """The document leads to a request that HTTP does not take."""
    return ProviderError(
        f"{source} cannot be asked for this: its address or its headers are not ones that HTTP takes.",
        executed="maybe" if sent else "no",
    )


def unreachable(source: str, *, sent: bool) -> ServiceUnavailableError:
    """The connection was not made, or broke before the answer was whole."""
    if not sent:
        return ServiceUnavailableError(f"{source} cannot be reached; check its address and the network.", executed="no")
    return ServiceUnavailableError(f"The connection to {source} broke before its answer was whole.", executed="maybe")


def timed_out(source: str, seconds: float, *, sent: bool) -> CallTimeoutError:
    """No whole answer came within the time of one attempt."""
    if not sent:
        return CallTimeoutError(f"{source} could not be reached within {seconds:.3g} s.", executed="no")
    return CallTimeoutError(f"{source} did not finish its answer within {seconds:.3g} s.", executed="maybe")


def pause_before_retry(failure: CallError, method: str, attempt: int, retries: int, remaining_s: float) -> float | None:
    """Seconds until it is tried again; None where it is not: it would not help, might do something twice, was tried
    often enough (``attempt`` counts from 0), or would come too late.
    """
    if method not in IDEMPOTENT or not failure.transient or attempt >= retries:
        return None
    draw = random.random()  # noqa: S311 - jitter, not a secret
    at_least_s = (failure.retry_after_ms or 0) / 1000
    pause = backoff_s(attempt, draw, base_s=_FIRST_PAUSE_S, cap_s=_MAX_PAUSE_S, at_least_s=at_least_s)
    return pause if pause + _LEAST_S < remaining_s else None
