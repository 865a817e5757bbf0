"""What a call comes back as."""

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
def test_a_result_carries_what_the_frame_does(structured: object) -> None:
    """Outputs, data and metadata come over as they are; data that is absent is None."""
    outputs = [{"type": "text", "text": "one"}, {"type": "image", "data": ""}, {"type": "text", "text": "two"}]
    result = result_of(CallToolRes("id", outputs, None, METADATA, structured))
    assert (result.request_id, result.outputs, result.metadata) == ("id", outputs, METADATA)
    assert result.structured == (None if structured is msgspec.UNSET else structured)
    assert result.text == "one\ntwo"


def test_a_frame_with_an_error_raises_it() -> None:
    """The error comes back as its class, with what the daemon said of it."""
    error = ToolError("TIMEOUT", "too slow", "maybe", retryable=True, details={"a": 1})
    with pytest.raises(CallTimeoutError, match="too slow") as raised:
        result_of(CallToolRes("id", [], error, METADATA))
    assert (raised.value.retryable, raised.value.details) == (True, {"a": 1})


def test_an_error_is_one_line() -> None:
    """A call's error has its code before it; the connection's stands as it is."""
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
def test_the_two_shapes_are_told_apart_by_type(
    third: str | float | None, timeout: float | None, expected: tuple[str | None, float]
) -> None:
    """A string in the third place is a baseline version, a number a time-out in seconds."""
    assert version_and_timeout(third, timeout) == expected


@pytest.mark.parametrize(("third", "timeout"), [(True, None), ([], None), (5.0, 5.0)])
def test_a_third_argument_of_neither_shape_is_refused(third: object, timeout: float | None) -> None:
    """What is neither, or a time-out given twice, is a mistake of the script and said so."""
    with pytest.raises(TypeError, match="third argument"):
        version_and_timeout(third, timeout)  # type: ignore[arg-type] # that is the point


def test_the_record_of_a_success_and_of_a_failure() -> None:
    """Success counts outputs, failure names the error; the version stands where it was given; the time is UTC."""
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
