"""Maps an API's failures to call errors, and decides on retries. Pure."""

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
"""Idempotent methods, which may be retried (RFC 9110, 9.2.2)."""

_FIRST_DELAY_S: Final = 0.5
_MAX_DELAY_S: Final = 60.0
_MIN_REMAINING_S: Final = 0.2
"""With less time remaining, there is no retry, because its answer would be too late."""
_MAX_DETAILS_BYTES: Final = 4096
_NOT_IMPLEMENTED: Final = frozenset({501, 505})


def status_error(
    source: str, status: int, message: str, value: Any, retry_after: str | None, now: datetime
) -> CallError:
    """Returns the error for an HTTP error status; ``value`` is the response's JSON, if any. The summary omits message
    and value.
    """
    summary = f"{source} answered HTTP {status}"
    error = _status_error(source, status, f"{summary}: {message}" if message else summary, value, retry_after, now)
    error.summary = f"{summary}."
    return error


def _status_error(
    source: str, status: int, prefix: str, value: Any, retry_after: str | None, now: datetime
) -> CallError:
    details: dict[str, Any] = {"status": status}
    if value is not None and len(msgspec.json.encode(value)) <= _MAX_DETAILS_BYTES:
        details["answer"] = value
    wait_ms = retry_after_ms(retry_after, now)
    if status in {400, 422}:
        return InvalidArgumentsError(f"{prefix}.", details=details)
    if status == 401:
        return PermissionDeniedError(f"{prefix}. {secret_rejected(source)}", details=details)
    if status == 403:
        return PermissionDeniedError(f"{prefix}.", details=details)
    if status in {404, 410}:
        return NotFoundError(f"{prefix}.", details=details)
    if status == 429:
        return RateLimitedError(f"{prefix}.", retry_after_ms=wait_ms, details=details)
    if status == 408 or (status >= 500 and status not in _NOT_IMPLEMENTED):
        return ServiceUnavailableError(f"{prefix}.", executed="maybe", retry_after_ms=wait_ms, details=details)
    return ProviderError(f"{prefix}.", executed="no", details=details)


def redirected(source: str, status: int, reason: str, *, executed: Executed) -> ProviderError:
    """Returns the error for a redirect that is not followed."""
    return ProviderError(
        f"{source} answered HTTP {status}, a redirect that is not followed: {reason}.", executed=executed
    )


def forbidden(source: str, reason: str) -> PermissionDeniedError:
    """Returns the error for a forbidden address."""
    return PermissionDeniedError(f"{source}: {reason}.", executed="no")


def unsendable(source: str, *, sent: bool) -> ProviderError:
    """Returns the error for a request that HTTP cannot carry."""
    return ProviderError.content_free(
        f"The request to {source} cannot be sent: its URL or a header is invalid in HTTP.",
        executed="maybe" if sent else "no",
    )


def unreachable(source: str, *, sent: bool) -> ServiceUnavailableError:
    """Returns the error for a connection that failed before the response was complete."""
    if not sent:
        return ServiceUnavailableError.content_free(
            f"{source} cannot be reached; check its address and the network.", executed="no"
        )
    return ServiceUnavailableError.content_free(
        f"The connection to {source} failed before its answer was complete.", executed="maybe"
    )


def timed_out(source: str, seconds: float, *, sent: bool) -> CallTimeoutError:
    """Returns the error for an attempt without a complete response in time."""
    if not sent:
        return CallTimeoutError.content_free(f"{source} could not be reached within {seconds:.3g} s.", executed="no")
    return CallTimeoutError.content_free(
        f"{source} did not finish its answer within {seconds:.3g} s.", executed="maybe"
    )


def retry_delay_s(failure: CallError, method: str, attempt: int, retries: int, remaining_s: float) -> float | None:
    """Returns the seconds before the retry after ``attempt`` (from 0), or None for no retry.

    There is no retry if the failure is permanent, the method is not idempotent, the retries are used up, or the time is
    too short.
    """
    if method not in IDEMPOTENT or not failure.transient or attempt >= retries:
        return None
    draw = random.random()  # noqa: S311 - jitter, not a secret
    at_least_s = (failure.retry_after_ms or 0) / 1000
    delay = backoff_s(attempt, draw, base_s=_FIRST_DELAY_S, cap_s=_MAX_DELAY_S, at_least_s=at_least_s)
    return delay if delay + _MIN_REMAINING_S < remaining_s else None
