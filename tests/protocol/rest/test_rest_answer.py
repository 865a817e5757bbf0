"""Answers of the REST API as bytes and headers."""

import json

from toold.protocol.error_codes import ErrorCode, ToolError
from toold.protocol.rest.rest_answer import (
    MAX_METADATA_BYTES,
    STATUS_OF_CODE,
    answer_of,
    error_answer,
    progress_event,
)
from toold.protocol.tool_call import Metadata, Progress, Timings, ToolResult


def test_each_code_has_a_status() -> None:
    """No code of the error table is missing."""
    assert set(STATUS_OF_CODE) == set(ErrorCode)


def test_a_wait_is_a_header_in_whole_seconds() -> None:
    """``retry-after`` is not shorter than the wait."""
    answer = error_answer(ToolError("RATE_LIMITED", "wait", "no", retryable=True, retry_after_ms=1200))
    assert (answer.status, answer.headers) == (429, (("retry-after", "2"),))


def test_long_metadata_is_shortened() -> None:
    """The header stays within its limit, in ASCII, and still says that a simulator answered."""
    metadata = Metadata(1.0, Timings(), simulated=True, model="é", argument_notices=("x" * MAX_METADATA_BYTES,))
    header = answer_of(ToolResult(metadata)).header_metadata
    assert header is not None
    assert header.isascii()
    assert json.loads(header) == {"latency_ms": 1.0, "simulated": True, "model": "é"}


def test_progress_has_the_numbers_that_the_tool_reports() -> None:
    """A number that the tool did not report is absent."""
    assert progress_event(Progress("asking")) == b'event: progress\ndata: {"message":"asking"}\n\n'
    assert b'"done":1' in progress_event(Progress("half", 1, 2))
