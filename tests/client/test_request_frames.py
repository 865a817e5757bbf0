"""The frames that the client sends, as bytes."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.client import request_frames
from toold.client.request_frames import CallFrame
from toold.protocol.error_codes import InvalidArgumentsError
from toold.protocol.frames import ClientFrame

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(), part, max_size=3),
    max_leaves=8,
)


def test_without_features_the_hello_is_a_plain_clients() -> None:
    """A plain hello has label and token and nothing beyond, so that the daemon serves it as one."""
    frame = json.loads(request_frames.hello(session_id="s", token=None, features=(), client={"name": "x"}))
    assert frame == {"op": "hello", "session_id": "s", "token": None}


def test_with_features_the_hello_says_who_it_is() -> None:
    """Features and client stand in the hello; what the client does not know of itself is left out."""
    client = {"name": "x", "version": "1", "workspace": None}
    frame = json.loads(request_frames.hello(session_id="s", token="t", features=("ack",), client=client))
    assert frame["features"] == ["ack"]
    assert frame["client"] == {"name": "x", "version": "1"}


def test_a_client_that_comes_back_brings_its_key() -> None:
    """The resume key stands in the hello where there is one."""
    frame = json.loads(
        request_frames.hello(session_id="s", token="t", features=("resume",), client={}, resume_key="key")
    )
    assert frame["resume"] == {"key": "key"}


@given(arguments=st.dictionaries(st.text(), JSON, max_size=4), timeout_s=st.none() | st.floats(0.001, 3600))
def test_any_json_arguments_arrive_as_they_are(arguments: dict[str, Any], timeout_s: float | None) -> None:
    """Whatever JSON holds, the daemon reads the same, and a time-out in milliseconds only where one is wished."""
    body, now = request_frames.call_tool("id", "echo", arguments), 1000.0
    frame = json.loads(CallFrame(body, None if timeout_s is None else now + timeout_s, True).frame(now))
    assert frame["arguments"] == arguments
    assert frame.get("timeout_ms") == (None if timeout_s is None else pytest.approx(timeout_s * 1000, abs=0.002))


def test_a_call_that_goes_out_again_has_the_time_that_is_left() -> None:
    """A second frame differs from the first in its time alone; past the deadline it has a moment."""
    call = CallFrame(request_frames.call_tool("id", "echo", {}), 100.0, True)
    first, second, late = (json.loads(call.frame(now)) for now in (70.0, 90.0, 101.0))
    assert (first.pop("timeout_ms"), second.pop("timeout_ms"), late.pop("timeout_ms")) == (30_000, 10_000, 1)
    assert first == second == late


@pytest.mark.parametrize("value", [object(), [object()], 1j, int, "\ud800"])
def test_arguments_that_are_no_json_are_refused(value: object) -> None:
    """What JSON cannot hold is refused before anything is sent, with the tool's name."""
    with pytest.raises(InvalidArgumentsError, match="echo") as refused:
        request_frames.call_tool("id", "echo", {"value": value})
    assert refused.value.executed == "no"


def test_arguments_that_contain_themselves_are_refused() -> None:
    """A list within itself has no end as JSON and is refused like other values that JSON cannot hold."""
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidArgumentsError):
        request_frames.call_tool("id", "echo", {"value": endless})


@pytest.mark.parametrize(
    "frame",
    [
        request_frames.hello(session_id="s", token="t", features=("ack",), client={"name": "x"}),
        request_frames.call_tool("id", "echo", {}),
        CallFrame(request_frames.call_tool("id", "echo", {}), 1.5, False).frame(0.0),
        *(request_frames.ask(op, "id") for op in ("cancel", "list_tools", "ping", "health")),
        *(request_frames.about(op, ["id"]) for op in ("call_status", "acknowledge")),
    ],
)
def test_the_protocol_knows_each_frame(frame: bytes) -> None:
    """Each frame is one of the protocol's models, as the daemon reads them."""
    assert msgspec.json.decode(frame, type=ClientFrame)
