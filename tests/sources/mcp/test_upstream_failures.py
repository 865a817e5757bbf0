"""What becomes of a call without a result: by codes, never by words."""

import pytest
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, REQUEST_TIMEOUT
from toold.sources.mcp.message_lines import TOO_LONG
from toold.sources.mcp.upstream_failures import refused
from toold.sources.mcp.upstream_http import UpstreamExchange


@pytest.mark.parametrize(
    ("code", "expected", "executed"),
    [
        (CONNECTION_CLOSED, "SERVICE_UNAVAILABLE", "maybe"),
        (REQUEST_TIMEOUT, "TIMEOUT", "maybe"),
        (TOO_LONG, "RESULT_TOO_LARGE", "yes"),
        (INVALID_PARAMS, "VALIDATION_ERROR", "no"),
        (METHOD_NOT_FOUND, "NOT_FOUND", "no"),
        (INTERNAL_ERROR, "PROVIDER_ERROR", "maybe"),
    ],
)
def test_an_error_goes_by_its_code(code: int, expected: str, executed: str) -> None:
    """Whatever its words are."""
    error = refused("s", code, "Connection closed", UpstreamExchange())
    assert (error.code, error.executed) == (expected, executed)


@pytest.mark.parametrize(
    ("exchange", "expected", "executed"),
    [
        (UpstreamExchange(forbidden="127.0.0.1 is loopback"), "PERMISSION_DENIED", "no"),
        (UpstreamExchange(broken=True), "SERVICE_UNAVAILABLE", "no"),
        (UpstreamExchange(broken=True, sent=True), "SERVICE_UNAVAILABLE", "maybe"),
        (UpstreamExchange(too_large=True, sent=True, status=200), "RESULT_TOO_LARGE", "yes"),
        (UpstreamExchange(status=401), "PERMISSION_DENIED", "no"),
        (UpstreamExchange(status=403), "PERMISSION_DENIED", "no"),
        (UpstreamExchange(status=404), "SERVICE_UNAVAILABLE", "no"),
        (UpstreamExchange(status=429), "RATE_LIMITED", "no"),
        (UpstreamExchange(status=503), "SERVICE_UNAVAILABLE", "maybe"),
        (UpstreamExchange(status=400), "VALIDATION_ERROR", "no"),
    ],
)
def test_http_is_known_by_what_became_of_the_request(exchange: UpstreamExchange, expected: str, executed: str) -> None:
    """Its status, or that there was none; else the JSON-RPC error counts."""
    error = refused("s", INVALID_PARAMS, "", exchange)
    assert (error.code, error.executed) == (expected, executed)


def test_a_server_may_say_when_to_come_again() -> None:
    """In seconds; a date is left aside."""
    assert refused("s", 0, "", UpstreamExchange(status=429, retry_after="7")).retry_after_ms == 7000
    assert refused("s", 0, "", UpstreamExchange(status=429, retry_after="Sun, 22 Nov 2026")).retry_after_ms is None
