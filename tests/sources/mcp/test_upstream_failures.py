"""The error of a call that has no result, and why a server is unavailable."""

from typing import Any

import pytest
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
    InitializeResult,
)
from pydantic import BaseModel, ValidationError
from toold.protocol.json_rpc import MISSING_CLIENT_CAPABILITY
from toold.protocol.questions.client_question import required_capabilities
from toold.sources.mcp.upstream_exchange import TOO_LONG, UpstreamExchange
from toold.sources.mcp.upstream_failures import (
    UpstreamUnavailableError,
    call_failure,
    http_connect_problem,
    unavailable,
    unavailable_reason,
)


def invalid(model: type[BaseModel], value: object) -> ValidationError:
    """The error of a value that is not of this model."""
    with pytest.raises(ValidationError) as caught:
        model.model_validate(value)
    return caught.value


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
def test_the_json_rpc_code_decides_the_error(code: int, expected: str, executed: str) -> None:
    """The message does not matter."""
    error = call_failure("s", code, "Connection closed", UpstreamExchange())
    assert (error.code, error.executed) == (expected, executed)


def test_the_message_of_the_server_is_a_sentence() -> None:
    """Whether it ends with a full stop or not."""
    for message in ("It is closed", "It is closed."):
        error = call_failure("s", INTERNAL_ERROR, message, UpstreamExchange())
        assert error.message == f"s answered with an error ({INTERNAL_ERROR}): It is closed."


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
def test_the_http_exchange_decides_the_error(exchange: UpstreamExchange, expected: str, executed: str) -> None:
    """By its status, or the lack of one; otherwise the JSON-RPC error applies."""
    error = call_failure("s", INVALID_PARAMS, "", exchange)
    assert (error.code, error.executed) == (expected, executed)


@pytest.mark.parametrize(
    ("data", "required"),
    [
        ({"requiredCapabilities": {"sampling": {}}}, {"sampling": {}}),
        (
            {"requiredCapabilities": {"elicitation": {"form": {"x": 1}, "y": {}}, "tasks": {}}},
            {"elicitation": {"form": {}}},
        ),
        ({"requiredCapabilities": {"tasks": {}}}, None),
        ({"requiredCapabilities": "sampling"}, None),
        (None, None),
    ],
)
def test_a_missing_capability_is_named(data: Any, required: Any) -> None:
    """As far as it is one for questions; the server's further fields are not passed on."""
    error = call_failure("s", MISSING_CLIENT_CAPABILITY, "no", UpstreamExchange(), data)
    assert required_capabilities(error.details) == required
    assert ("has not declared that it can" in error.message) == (required is not None)


def test_retry_after_is_passed_on() -> None:
    """In seconds; a date that has passed is ignored."""
    assert call_failure("s", 0, "", UpstreamExchange(status=429, retry_after="7")).retry_after_ms == 7000
    assert call_failure("s", 0, "", UpstreamExchange(status=429, retry_after="Sun, 22 Nov 2026")).retry_after_ms is None


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (UpstreamUnavailableError("it hangs"), "it hangs"),
        (ExceptionGroup("", [ExceptionGroup("", [UpstreamUnavailableError("it hangs")])]), "it hangs"),
        (
            FileNotFoundError(2, "No such file", "server"),
            "its command or working directory does not exist (server)",
        ),
        (
            FileNotFoundError(2, "No such file", "npx"),
            (
                "its command or working directory does not exist (npx); install Node.js, which contains it "
                "(in the container: docs/container.md)"
            ),
        ),
        (PermissionError(13, "Permission denied"), "it cannot be started or reached (Permission denied)"),
        (RuntimeError("odd"), "it cannot be used (RuntimeError: odd)"),
        (
            invalid(InitializeResult, {"protocolVersion": "1", "capabilities": {}, "serverInfo": {"version": "1"}}),
            "its answer is not valid MCP (serverInfo.name: Field required)",
        ),
    ],
)
def test_the_first_cause_is_the_reason(error: Exception, reason: str) -> None:
    """However deeply it is nested in groups."""
    assert unavailable_reason(error) == reason


def test_a_call_to_an_unavailable_server_gets_a_retry_hint() -> None:
    """Nothing was executed."""
    error = unavailable("files", "it hangs", 2.0)
    assert (error.executed, error.retryable, error.retry_after_ms) == ("no", True, 2000)
    assert error.message == "files is not available: it hangs. The daemon reconnects automatically."
    assert unavailable("files", "it hangs.", 2.0).message == error.message  # one full stop
    assert unavailable("files", "it hangs", -1.0).retry_after_ms == 100


@pytest.mark.parametrize(
    ("exchange", "reason"),
    [
        (UpstreamExchange(forbidden="127.0.0.1 is loopback"), "127.0.0.1 is loopback"),
        (UpstreamExchange(status=503), "it answered HTTP 503"),
        (UpstreamExchange(too_large=True), "its answer is larger than its max_answer_bytes; request less at a time"),
        (UpstreamExchange(refused="it needs a sign-in"), "it needs a sign-in"),
    ],
)
def test_a_problem_does_not_repeat_the_name(exchange: UpstreamExchange, reason: str) -> None:
    """The operator reads it after the source's name."""
    assert http_connect_problem("wiki", exchange) == reason
