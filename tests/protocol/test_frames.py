"""Frames as encoded."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.error_codes import OverCapacityError
from toold.protocol.frames import (
    CallToolRes,
    ErrorFrame,
    HelloAck,
    ProgressFrame,
    canonical_tool_name,
    decode_server_frame,
    encode,
)
from toold.protocol.tool_call import Metadata, TextContent, Timings

META = Metadata(1.5, Timings(0.5, 1.0, 0.0))


def test_a_successful_answer_has_error_null() -> None:
    """``call_tool_res`` has its five fixed fields, and ``structured`` only if the tool returned data."""
    wire = msgspec.json.decode(encode(CallToolRes("a", (TextContent("hi"),), None, META)))
    assert wire == {
        "op": "call_tool_res",
        "request_id": "a",
        "outputs": [{"type": "text", "text": "hi"}],
        "error": None,
        "metadata": {"latency_ms": 1.5, "timings": {"queue_ms": 0.5, "tool_ms": 1.0, "provider_ms": 0.0}},
    }


def test_structured_null_differs_from_absent() -> None:
    """A tool that returns null has ``structured: null`` on the wire."""
    wire = msgspec.json.decode(encode(CallToolRes(7, (TextContent("null"),), None, META, structured=None)))
    assert wire["structured"] is None
    assert wire["request_id"] == 7


def test_an_error_always_has_executed_and_retryable() -> None:
    """Also if they are ``no`` and false."""
    wire = msgspec.json.decode(encode(ErrorFrame(OverCapacityError(transient=False).to_tool_error())))
    assert wire["error"]["executed"] == "no"
    assert wire["error"]["retryable"] is False
    assert "request_id" not in wire


def test_a_refused_hello_ack_is_short() -> None:
    """On failure the ack has ``ok`` and ``error`` only."""
    wire = msgspec.json.decode(encode(HelloAck(False, error=OverCapacityError().to_tool_error())))
    assert set(wire) == {"op", "ok", "error"}


def test_the_older_id_is_sent_only_to_clients_that_use_it() -> None:
    """A client that sends ``id`` gets its id under both names."""
    assert b'"id"' not in encode(ProgressFrame("a", 1, "m"))
    assert msgspec.json.decode(encode(ProgressFrame("a", 1, "m", id="a")))["id"] == "a"


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ("chat", "chat"),
        ("chat_EXAI-WS", "chat"),
        ("chat-EXAI-WS_2", "chat"),
        ("chat_EXAI_WS-VSCode1", "chat"),
        ("kimi_chat-EXAI_WS", "kimi_chat"),
        ("self-check_EXAI-WSx", "self-check"),
        ("EXAI", "EXAI"),
        ("chat_exai-ws", "chat_exai-ws"),
    ],
)
def test_a_tool_name_loses_the_suffix_of_older_clients(sent: str, name: str) -> None:
    """Both separators are recognized in either place, and nothing else is removed."""
    assert canonical_tool_name(sent) == name


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(codec="utf-8")),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
        ),
        max_leaves=8,
    )
)
def test_any_json_value_round_trips(value: object) -> None:
    """The client reads what the tool returned under ``structured``."""
    frame = decode_server_frame(encode(CallToolRes("a", (), None, META, structured=value)))
    assert isinstance(frame, CallToolRes)
    assert frame.structured == value
    assert msgspec.json.encode(frame.structured) == msgspec.json.encode(value)
