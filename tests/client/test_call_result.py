"""The result of a call."""

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from toold.client.call_result import error_text, metrics_record, result_of, version_and_timeout
from toold.client.client_errors import ConnectionLostError
from toold.protocol.error_codes import CallTimeoutError, ToolError
from toold.protocol.frames import CallToolRes
from toold.protocol.tool_call import Metadata, Timings

METADATA = Metadata(latency_ms=1.0, timings=Timings())


@pytest.mark.parametrize("structured", [msgspec.UNSET, None, {"a": 1}, 0])
def test_a_result_has_the_fields_of_its_frame(structured: object) -> None:
    """Outputs, data and metadata are unchanged; absent data is None."""
    outputs = [{"type": "text", "text": "one"}, {"type": "image", "data": ""}, {"type": "text", "text": "two"}]
    result = result_of(CallToolRes("id", outputs, None, METADATA, structured))
    assert (result.request_id, result.outputs, result.metadata) == ("id", outputs, METADATA)
    assert result.structured == (None if structured is msgspec.UNSET else structured)
    assert result.text == "one\ntwo"


def test_a_frame_with_an_error_raises_it() -> None:
    """As the class of its code, with the daemon's details."""
    error = ToolError("TIMEOUT", "too slow", "maybe", retryable=True, details={"a": 1})
    with pytest.raises(CallTimeoutError, match="too slow") as raised:
        result_of(CallToolRes("id", [], error, METADATA))
    assert (raised.value.retryable, raised.value.details) == (True, {"a": 1})


def test_an_error_is_one_line() -> None:
    """A call's error starts with its code; a connection error is unchanged."""
    assert error_text(CallTimeoutError("too slow")) == "TIMEOUT: too slow"
    assert error_text(ConnectionLostError("gone", executed="maybe")) == "gone"


@pytest.mark.parametrize(
    ("third", "timeout", "expected"),
    [
        (None, None, (None, 30.0)),
        (None, 5.0, (None, 5.0)),
        ("v1.2", None, ("v1.2", 30.0)),
        ("v1.2", 5.0, ("v1.2", 5.0)),
        (12.5, None, (None, 12.5)),
        (12, None, (None, 12.0)),
    ],
)
def test_the_third_argument_selects_the_signature(
    third: str | float | None, timeout: float | None, expected: tuple[str | None, float]
) -> None:
    """A string is a baseline version, a number a timeout in seconds."""
    assert version_and_timeout(third, timeout) == expected


@pytest.mark.parametrize(("third", "timeout"), [(True, None), ([], None), (5.0, 5.0)])
def test_an_invalid_third_argument_is_refused(third: object, timeout: float | None) -> None:
    """So is a timeout that is given twice."""
    with pytest.raises(TypeError, match="third argument"):
        version_and_timeout(third, timeout)  # type: ignore[arg-type] # that is the point


def test_the_record_of_a_success_and_of_a_failure() -> None:
    """Success has the number of outputs, failure the error; the version only if given; the time is UTC."""
    started = datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=1)))
    good = metrics_record(
        tool_name="echo",
        iteration=2,
        baseline_version="v1",
        started=started,
        latency_ms=1.5,
        outputs=[{"type": "text"}],
        error=None,
    )
    assert good == {
        "tool_name": "echo",
        "iteration": 2,
        "status": "success",
        "latency_ms": 1.5,
        "timestamp": "2026-01-01T11:00:00+00:00",
        "baseline_version": "v1",
        "output_count": 1,
    }
    bad = metrics_record(
        tool_name="echo",
        iteration=1,
        baseline_version=None,
        started=started.astimezone(UTC),
        latency_ms=1.5,
        outputs=[],
        error="TIMEOUT: too slow",
    )
    assert (bad["status"], bad["error"]) == ("error", "TIMEOUT: too slow")
    assert not {"output_count", "baseline_version"} & set(bad)
