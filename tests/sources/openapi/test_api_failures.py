"""Failures: what an API's status means, and what is tried again."""

from datetime import UTC, datetime

import pytest
from toold.protocol.error_codes import CallError, ServiceUnavailableError
from toold.sources.openapi.api_failures import pause_before_retry, refused, timed_out, unreachable

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
def test_each_status_has_its_code(status: int, code: str, executed: str, transient: bool) -> None:
    """And says honestly whether something may have been done."""
    error = refused("crm", status, "its words", {"field": "name"}, None, NOW)
    assert (error.code, error.executed, error.transient) == (code, executed, transient)
    assert error.message.startswith(f"crm answered HTTP {status}: its words.")
    assert error.details == {"status": status, "answer": {"field": "name"}}


def test_what_an_api_says_at_length_is_left_out() -> None:
    """Of the details; the words have a bound of their own."""
    assert refused("crm", 400, "", ["x" * 5000], None, NOW).details == {"status": 400}


@pytest.mark.parametrize(
    ("header", "wait_ms"),
    [("2", 2000), ("0.5", 500), ("Thu, 01 Jan 2026 00:00:03 GMT", 3000), ("soon", None), (None, None), ("-5", 0)],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, wait_ms: int | None) -> None:
    """In milliseconds, as the error table has it."""
    assert refused("crm", 429, "", None, header, NOW).retry_after_ms == wait_ms


def test_what_was_never_sent_was_not_executed() -> None:
    """What was, may have been."""
    assert [unreachable("crm", sent=sent).executed for sent in (False, True)] == ["no", "maybe"]
    assert [timed_out("crm", 1.0, sent=sent).executed for sent in (False, True)] == ["no", "maybe"]


def busy(wait_ms: int | None = None) -> CallError:
    return ServiceUnavailableError("busy", executed="maybe", retry_after_ms=wait_ms)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_idempotent_methods_are_tried_again(method: str) -> None:
    """After a pause that grows, or the one that the API asks for."""
    first = pause_before_retry(busy(), method, 0, 2, 60)
    second = pause_before_retry(busy(), method, 1, 2, 60)
    assert first is not None
    assert second is not None
    assert 0.25 <= first <= 0.5 <= second <= 1.0
    asked = pause_before_retry(busy(3000), method, 0, 2, 60)
    assert asked is not None
    assert 3.0 <= asked <= 3.25


@pytest.mark.parametrize(
    ("error", "method", "attempt", "remaining_s"),
    [
        (busy(), "POST", 0, 60),
        (busy(), "PATCH", 0, 60),
        (refused("crm", 404, "", None, None, NOW), "GET", 0, 60),
        (busy(), "GET", 2, 60),
        (busy(5000), "GET", 0, 5),
        (busy(), "GET", 0, 0.3),
    ],
)
def test_others_are_not(error: CallError, method: str, attempt: int, remaining_s: float) -> None:
    """What might be done twice, would fail again, was tried often enough, or would come too late."""
    assert pause_before_retry(error, method, attempt, 2, remaining_s) is None
