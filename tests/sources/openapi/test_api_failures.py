"""Failures: what an API's status means, and what is tried again."""

from datetime import UTC, datetime

import pytest
from toold.protocol.error_codes import CallError, ServiceUnavailableError
from toold.sources.openapi.api_failures import retry_delay_s, status_error, timed_out, unreachable

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "code", "executed", "transient"),
    [
        (400, "VALIDATION_ERROR", "no", False),
        (401, "PERMISSION_DENIED", "no", False),
        (403, "PERMISSION_DENIED", "no", False),
        (404, "NOT_FOUND", "no", False),
        (409, "PROVIDER_ERROR", "no", False),
        (410, "NOT_FOUND", "no", False),
        (422, "VALIDATION_ERROR", "no", False),
        (429, "RATE_LIMITED", "no", True),
        (408, "SERVICE_UNAVAILABLE", "maybe", True),
        (500, "SERVICE_UNAVAILABLE", "maybe", True),
        (501, "PROVIDER_ERROR", "no", False),
        (503, "SERVICE_UNAVAILABLE", "maybe", True),
        (304, "PROVIDER_ERROR", "no", False),
    ],
)
def test_each_status_maps_to_an_error_code(status: int, code: str, executed: str, transient: bool) -> None:
    """And says whether the call may have been executed."""
    error = status_error("crm", status, "its words", {"field": "name"}, None, NOW)
    assert (error.code, error.executed, error.transient) == (code, executed, transient)
    assert error.message.startswith(f"crm answered HTTP {status}: its words.")
    assert error.details == {"status": status, "answer": {"field": "name"}}


def test_a_large_error_body_is_omitted_from_the_details() -> None:
    """The message has its own limit."""
    assert status_error("crm", 400, "", ["x" * 5000], None, NOW).details == {"status": 400}


@pytest.mark.parametrize(
    ("header", "wait_ms"),
    [("2", 2000), ("0.5", 500), ("Thu, 01 Jan 2026 00:00:03 GMT", 3000), ("soon", None), (None, None), ("-5", 0)],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, wait_ms: int | None) -> None:
    """In milliseconds in the error."""
    assert status_error("crm", 429, "", None, header, NOW).retry_after_ms == wait_ms


def test_an_unsent_request_was_not_executed() -> None:
    """A sent one may have been."""
    assert [unreachable("crm", sent=sent).executed for sent in (False, True)] == ["no", "maybe"]
    assert [timed_out("crm", 1.0, sent=sent).executed for sent in (False, True)] == ["no", "maybe"]


def busy(wait_ms: int | None = None) -> CallError:
    return ServiceUnavailableError("busy", executed="maybe", retry_after_ms=wait_ms)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_idempotent_methods_are_retried(method: str) -> None:
    """After a growing delay, at least the one that the API asks for."""
    first = retry_delay_s(busy(), method, 0, 2, 60)
    second = retry_delay_s(busy(), method, 1, 2, 60)
    assert first is not None
    assert second is not None
    assert 0.25 <= first <= 0.5 <= second <= 1.0
    asked = retry_delay_s(busy(3000), method, 0, 2, 60)
    assert asked is not None
    assert 3.0 <= asked <= 3.25


@pytest.mark.parametrize(
    ("error", "method", "attempt", "remaining_s"),
    [
        (busy(), "POST", 0, 60),
        (busy(), "PATCH", 0, 60),
        (status_error("crm", 404, "", None, None, NOW), "GET", 0, 60),
        (busy(), "GET", 2, 60),
        (busy(5000), "GET", 0, 5),
        (busy(), "GET", 0, 0.3),
    ],
)
def test_other_failures_are_not_retried(error: CallError, method: str, attempt: int, remaining_s: float) -> None:
    """Non-idempotent methods, permanent failures, used-up retries, too little time."""
    assert retry_delay_s(error, method, attempt, 2, remaining_s) is None
