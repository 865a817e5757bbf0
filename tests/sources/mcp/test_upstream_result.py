"""The failures of a server's tools."""

from toold.sources.mcp.upstream_result import failure

TEXT = {"type": "text", "text": "hello"}


def test_a_failure_has_the_tools_message() -> None:
    """And its structured data, if small."""
    error = failure("s", [TEXT], {"why": "paper"})
    assert (error.code, error.message, error.retryable) == ("TOOL_EXECUTION_ERROR", "s: hello.", False)
    assert error.details == {"answer": {"why": "paper"}}
    assert failure("s", [], None).message == "s: the tool failed without a message."


def test_error_codes_in_the_daemons_format_are_passed_on() -> None:
    """Unknown codes are ignored."""
    structured = {"code": "RATE_LIMITED", "message": "slowly", "retryable": True, "retry_after_ms": 500}
    error = failure("s", [TEXT], structured)
    assert (error.code, error.retryable, error.executed, error.retry_after_ms) == ("RATE_LIMITED", True, "maybe", 500)
    assert failure("s", [TEXT], structured | {"executed": "no"}).executed == "no"
    assert not failure("s", [TEXT], structured | {"retryable": False}).retryable
    assert failure("s", [TEXT], structured | {"code": "ODD"}).code == "TOOL_EXECUTION_ERROR"
    assert failure("s", [TEXT], structured | {"code": ["ODD"]}).code == "TOOL_EXECUTION_ERROR"
