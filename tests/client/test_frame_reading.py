"""The reading of the daemon's frames: what makes no sense harms no call."""

import json
import logging
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.client.frame_reading import read_frame
from toold.protocol.error_codes import ToolError
from toold.protocol.frames import CallToolRes


@given(st.binary())
def test_any_bytes_are_a_frame_or_nothing(data: bytes) -> None:
    """Whatever a peer sends, reading it raises nothing."""
    read_frame(data)


@pytest.mark.parametrize(
    "data", ["[]", "7", "null", "{}", '{"op":7}', '{"op":"later"}', "{", '{"op":"later"', "[" * 9999]
)
def test_frames_that_are_not_known_are_skipped(data: str) -> None:
    """Unknown ops, other JSON and broken JSON are nothing."""
    assert read_frame(data.encode()) is None


@pytest.mark.parametrize(
    ("fields", "outputs", "error"),
    [
        ({"outputs": [{"type": "text", "text": "hi"}], "error": None}, [{"type": "text", "text": "hi"}], None),
        ({}, [], None),
        ({"outputs": "text", "metadata": {"latency_ms": "long"}}, [], None),
        ({"error": "it broke"}, [], ToolError("INTERNAL_ERROR", "it broke", "maybe", False)),
        ({"error": {"message": "it broke"}}, [], ToolError("INTERNAL_ERROR", "it broke", "maybe", False)),
        (
            {"error": {"code": "TIMEOUT", "message": "late", "executed": "maybe", "retryable": True}},
            [],
            ToolError("TIMEOUT", "late", "maybe", True),
        ),
    ],
)
def test_an_answer_that_does_not_fit_the_model_still_ends_its_call(
    fields: dict[str, Any], outputs: list[Any], error: ToolError | None
) -> None:
    """An answer with missing or wrong fields counts as far as it fits: no call hangs for a daemon's slip."""
    frame = read_frame(json.dumps({"op": "call_tool_res", "request_id": "id", **fields}))
    assert isinstance(frame, CallToolRes)
    assert (frame.request_id, list(frame.outputs), frame.error) == ("id", outputs, error)
    assert frame.structured is msgspec.UNSET


def test_what_was_skipped_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Broken frames leave a line in the log, unknown ops one for those who debug."""
    with caplog.at_level(logging.DEBUG, "toold.client"):
        read_frame("{")
        read_frame('{"op":"later"}')
    assert [record.levelname for record in caplog.records] == ["WARNING", "DEBUG"]
