"""The frames that the client sends and receives."""

import json
import logging
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.client import client_frames
from toold.client.client_frames import CallFrame, read_frame
from toold.protocol.error_codes import InvalidArgumentsError, ToolError
from toold.protocol.frames import CallToolRes, ClientFrame

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(), part, max_size=3),
    max_leaves=8,
)


def test_a_hello_without_features_has_session_id_and_token_only() -> None:
    """The daemon serves such a client as a plain one."""
    frame = json.loads(client_frames.hello_frame(session_id="s", token=None, features=(), client={"name": "x"}))
    assert frame == {"op": "hello", "session_id": "s", "token": None}


def test_a_hello_with_features_names_the_client() -> None:
    """Client fields without a value are omitted."""
    client = {"name": "x", "version": "1", "workspace": None}
    frame = json.loads(client_frames.hello_frame(session_id="s", token="t", features=("ack",), client=client))
    assert frame["features"] == ["ack"]
    assert frame["client"] == {"name": "x", "version": "1"}


def test_a_resuming_client_sends_its_resume_key() -> None:
    """In the hello frame, with the number of the connection."""
    frame = json.loads(
        client_frames.hello_frame(
            session_id="s", token="t", features=("resume",), client={}, resume_key="key", connection_number=3
        )
    )
    assert frame["resume"] == {"key": "key", "n": 3}


@given(arguments=st.dictionaries(st.text(), JSON, max_size=4), timeout_s=st.none() | st.floats(0.001, 3600))
def test_any_json_arguments_arrive_unchanged(arguments: dict[str, Any], timeout_s: float | None) -> None:
    """The frame carries a timeout in milliseconds only if the caller set one."""
    body, now = client_frames.call_tool_frame("id", "echo", arguments), 1000.0
    frame = json.loads(CallFrame(body, None if timeout_s is None else now + timeout_s, True).frame(now))
    assert frame["arguments"] == arguments
    assert frame.get("timeout_ms") == (None if timeout_s is None else pytest.approx(timeout_s * 1000, abs=0.002))


def test_a_resent_call_has_the_remaining_time() -> None:
    """The frames differ only in the timeout; past the deadline it is 1 ms."""
    call = CallFrame(client_frames.call_tool_frame("id", "echo", {}), 100.0, True)
    first, second, late = (json.loads(call.frame(now)) for now in (70.0, 90.0, 101.0))
    assert (first.pop("timeout_ms"), second.pop("timeout_ms"), late.pop("timeout_ms")) == (30_000, 10_000, 1)
    assert first == second == late


@pytest.mark.parametrize("value", [object(), [object()], 1j, int, "\ud800"])
def test_arguments_that_json_cannot_encode_are_refused(value: object) -> None:
    """Before anything is sent; the error names the tool."""
    with pytest.raises(InvalidArgumentsError, match="echo") as refused:
        client_frames.call_tool_frame("id", "echo", {"value": value})
    assert refused.value.executed == "no"


def test_arguments_that_contain_themselves_are_refused() -> None:
    """Like other values that JSON cannot encode."""
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidArgumentsError):
        client_frames.call_tool_frame("id", "echo", {"value": endless})


@pytest.mark.parametrize(
    "frame",
    [
        client_frames.hello_frame(session_id="s", token="t", features=("ack",), client={"name": "x"}),
        client_frames.call_tool_frame("id", "echo", {}),
        CallFrame(client_frames.call_tool_frame("id", "echo", {}), 1.5, False).frame(0.0),
        *(client_frames.request_frame(op, "id") for op in ("cancel", "list_tools", "ping", "health")),
        *(client_frames.request_ids_frame(op, ["id"]) for op in ("call_status", "acknowledge")),
    ],
)
def test_each_frame_fits_the_protocol(frame: bytes) -> None:
    """The daemon's models decode each of them."""
    assert msgspec.json.decode(frame, type=ClientFrame)


# --- received frames -------------------------------------------------------------------------------------------------


@given(st.binary())
def test_reading_any_bytes_never_raises(data: bytes) -> None:
    """Any bytes give a frame or None."""
    read_frame(data)


@pytest.mark.parametrize(
    "data", ["[]", "7", "null", "{}", '{"op":7}', '{"op":"later"}', "{", '{"op":"later"', "[" * 9999]
)
def test_unknown_frames_are_skipped(data: str) -> None:
    """Frames with unknown ops, other JSON and malformed JSON give None."""
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
    """Its valid fields are used, so that no call hangs because of a bug in the daemon."""
    frame = read_frame(json.dumps({"op": "call_tool_res", "request_id": "id", **fields}))
    assert isinstance(frame, CallToolRes)
    assert (frame.request_id, list(frame.outputs), frame.error) == ("id", outputs, error)
    assert frame.structured is msgspec.UNSET


def test_skipped_frames_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Broken frames as warnings, unknown ops at debug level."""
    with caplog.at_level(logging.DEBUG, "toold.client"):
        read_frame("{")
        read_frame('{"op":"later"}')
    assert [record.levelname for record in caplog.records] == ["WARNING", "DEBUG"]
