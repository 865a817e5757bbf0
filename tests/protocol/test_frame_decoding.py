"""Any bytes become a frame or an addressed error."""

import json

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from toold.protocol.frame_decoding import (
    FrameRefusal,
    decode_client_frame,
    decode_long_frame,
    request_id_of,
    request_key,
    tool_call,
)
from toold.protocol.frames import (
    MAX_REQUEST_IDS,
    Acknowledge,
    CallTool,
    Cancel,
    ClientFrame,
    Health,
    Hello,
    ListTools,
    Ping,
)
from toold.protocol.json_pieces import LONG_BYTES, MAX_VALUES
from toold.protocol.long_texts import is_quick
from toold.protocol.tool_call import ToolCall


def decoded_frame(text: str) -> ClientFrame | FrameRefusal:
    return decode_client_frame(text.encode())


def refusal(text: str) -> FrameRefusal:
    frame = decoded_frame(text)
    assert isinstance(frame, FrameRefusal)
    return frame


def call(**fields: object) -> ToolCall | FrameRefusal:
    frame = decoded_frame(json.dumps({"op": "call_tool", **fields}))
    if isinstance(frame, FrameRefusal):
        return frame
    assert isinstance(frame, CallTool)
    return tool_call(frame, 60, make_id=lambda: "made")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"op":"hello"}', Hello),
        ('{"op":"call_tool","name":"echo"}', CallTool),
        ('{"op":"tool_call","tool":"echo"}', CallTool),
        ('{"op":"cancel","request_id":1}', Cancel),
        ('{"op":"acknowledge","request_ids":[1]}', Acknowledge),
        ('{"op":"forget","request_ids":[1]}', Acknowledge),
        ('{"op":"list_tools"}', ListTools),
        ('{"op":"ping","unknown":{"field":1}}', Ping),
        ('{"op":"health"}', Health),
    ],
)
def test_each_op_becomes_its_frame(text: str, kind: type) -> None:
    """Unknown fields are ignored."""
    assert isinstance(decoded_frame(text), kind)


@pytest.mark.parametrize(
    ("data", "code", "word"),
    [
        ("", "PROTOCOL_ERROR", "JSON"),
        ("{", "PROTOCOL_ERROR", "JSON"),
        ('{"op":"ping"} x', "PROTOCOL_ERROR", "JSON"),
        ("[1]", "PROTOCOL_ERROR", "an array"),
        ('"ping"', "PROTOCOL_ERROR", "a string"),
        ("null", "PROTOCOL_ERROR", "null"),
        ("1", "PROTOCOL_ERROR", "a number"),
        ("{}", "PROTOCOL_ERROR", "op"),
        ('{"op":5}', "PROTOCOL_ERROR", "op"),
        ('{"op":"pin"}', "PROTOCOL_ERROR", "did you mean 'ping'?"),
        ('{"op":"zzzzzz"}', "PROTOCOL_ERROR", "call_tool"),
        ('{"op":"cancel"}', "INVALID_REQUEST", "request_id: missing."),
        (
            '{"op":"forget","request_ids":[true]}',
            "INVALID_REQUEST",
            "request_ids[0]: should be a number or a string",
        ),
        ("[" * 10_000, "PROTOCOL_ERROR", "JSON"),
        (json.dumps("x" * LONG_BYTES) + "[" * 10_000, "PROTOCOL_ERROR", "JSON"),
        (f'{{"op":"ping","x":"{"x" * LONG_BYTES}","y":{"[" * 10_000}', "PROTOCOL_ERROR", "nested too deeply"),
    ],
)
def test_invalid_frames_are_refused_with_the_reason(data: str, code: str, word: str) -> None:
    """The error is not addressed as a call."""
    decoded = refusal(data)
    assert decoded.error.code == code
    assert word in decoded.error.message
    assert decoded.error.executed == "no"
    assert not decoded.call


def test_an_unknown_op_is_answered_under_its_request_id() -> None:
    """The sender can tell which frame was rejected."""
    assert refusal('{"op":"zip","request_id":7}').request_id == 7
    assert refusal('{"op":"zip","id":"x"}').request_id == "x"


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"request_id": "a", "name": "echo", "arguments": []}, "arguments: should be an object or null, not an array."),
        ({"request_id": "a", "name": "echo", "arguments": "x"}, "arguments"),
        ({"request_id": "a", "name": 5}, "name"),
        ({"request_id": "a"}, "name: missing"),
        ({"request_id": "a", "name": ""}, "name: missing"),
        ({"request_id": "a", "tool": {"nome": "x"}}, "name: missing"),
        ({"request_id": "a", "name": "x", "timeout_ms": 0}, "timeout_ms"),
        ({"request_id": "a", "name": "x", "timeout_ms": "5"}, "timeout_ms: should be a number or null, not a string."),
        ({"request_id": "a", "name": "x", "on_disconnect": "maybe"}, "on_disconnect: should be keep or cancel."),
        ({"request_id": "a", "name": "x", "arguments": {"a": float("inf")}}, "JSON"),
        ({"request_id": "a", "name": "x", "arguments": {"a": float("nan")}}, "JSON"),
        ({"request_id": "a", "name": "x", "arguments": {"a": "\ud800"}}, "truncated"),
    ],
)
def test_a_call_with_an_invalid_field_is_answered_as_a_call(fields: dict[str, object], word: str) -> None:
    """The error is a ``call_tool_res`` under the call's id, and names the field."""
    decoded = call(**fields)
    assert isinstance(decoded, FrameRefusal)
    assert (decoded.call, decoded.request_id) == (True, "a")
    assert decoded.error.code == "INVALID_REQUEST"
    assert word in decoded.error.message


@pytest.mark.parametrize("request_id", [True, [], {}, "x" * 513])
def test_ids_that_cannot_be_echoed_are_refused_without_an_id(request_id: object) -> None:
    """An id that is neither a string nor a number, or is too long, cannot address an answer."""
    decoded = call(request_id=request_id, name="echo")
    assert isinstance(decoded, FrameRefusal)
    assert (decoded.call, decoded.request_id) == (False, None)
    assert "request_id" in decoded.error.message


@pytest.mark.parametrize("request_id", ["", "a", 7, -1, 7.5, 10**30])
def test_usable_ids_are_echoed_unchanged(request_id: str | float) -> None:
    """Strings, and numbers of any size."""
    decoded = call(request_id=request_id, name="echo")
    assert isinstance(decoded, ToolCall)
    assert decoded.request_id == request_id
    assert type(decoded.request_id) is type(request_id)


def test_null_and_absent_arguments_are_empty() -> None:
    """Both mean {}."""
    for fields in ({}, {"arguments": None}):
        decoded = call(name="echo", **fields)
        assert isinstance(decoded, ToolCall)
        assert decoded.arguments == {}
        assert decoded.request_id == "made"


@pytest.mark.parametrize("tool", ["echo_EXAI-WS", {"name": "echo"}])
def test_aliases(tool: object) -> None:
    """``tool_call`` with ``tool``, and ``id`` for ``request_id``, which is then echoed under both names."""
    frame = decoded_frame(json.dumps({"op": "tool_call", "id": 5, "tool": tool, "arguments": {"text": "x"}}))
    assert isinstance(frame, CallTool)
    decoded = tool_call(frame, 60, make_id=lambda: "made")
    assert isinstance(decoded, ToolCall)
    assert (decoded.name, decoded.request_id, decoded.echo_id) == ("echo", 5, True)


def test_request_keys_are_distinct() -> None:
    """``7``, ``7.0``, ``"7"`` and ``"n7"`` are four different ids."""
    assert len({request_key(7), request_key(7.0), request_key("7"), request_key("n7")}) == 4


@given(st.text() | st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_a_request_key_round_trips(request_id: str | float) -> None:
    """A redelivered answer, perhaps after a restart, has only the key to restore its id."""
    decoded = request_id_of(request_key(request_id))
    assert (decoded, type(decoded)) == (request_id, type(request_id))


any_text = st.text(st.characters(exclude_categories=()))  # with lone surrogates


@given(st.binary() | any_text.map(lambda text: text.encode(errors="surrogatepass")))
@example(b'{"op":"ping","request_id":"\xff"}')
@example(b'{"op":"ping","x":"%b","request_id":"\xff"}' % (b"x" * LONG_BYTES))
def test_no_payload_raises(data: bytes) -> None:
    """Decoding any payload, at once or in pieces, returns a frame or an error that can be encoded."""
    for decode in (decode_client_frame, decode_long_frame):
        frame = decode(data)
        if isinstance(frame, FrameRefusal):
            msgspec.json.encode((frame.error, frame.request_id))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)
fields = st.dictionaries(
    st.sampled_from(["request_id", "id", "name", "tool", "arguments", "timeout_ms", "on_disconnect", "zzz"]),
    json_values,
)


@pytest.mark.parametrize("op", ["call_status", "acknowledge", "forget"])
def test_a_frame_with_too_many_ids_is_refused(op: str) -> None:
    """The error says how many ids are allowed."""
    assert not isinstance(decoded_frame(json.dumps({"op": op, "request_ids": [1] * 4096})), FrameRefusal)
    for decode in (decode_client_frame, decode_long_frame):
        decoded = decode(json.dumps({"op": op, "request_ids": [1] * (MAX_REQUEST_IDS + 1)}).encode())
        assert isinstance(decoded, FrameRefusal)
        assert decoded.error.code == "INVALID_REQUEST"
        assert decoded.error.message == "request_ids: has more than 4096 ids; send several frames."


@pytest.mark.parametrize("position", ["first", "last"])
@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([[]] * (MAX_VALUES + 1), "more than 100000 values; send the data in several calls"),
        ([10**400], "an integer has more than 1024 bits"),
    ],
    ids=["values", "digits"],
)
def test_a_frame_that_would_take_too_long_is_refused_under_its_id(value: object, words: str, position: str) -> None:
    """A call is answered as a call, wherever the id is."""
    fields = {"op": "call_tool", "request_id": "a", "name": "echo", "arguments": {"value": value}}
    decoded = decode_long_frame(json.dumps(fields if position == "first" else dict(reversed(fields.items()))).encode())
    assert isinstance(decoded, FrameRefusal)
    assert (decoded.call, decoded.request_id, decoded.error.code) == (True, "a", "INVALID_REQUEST")
    assert words in decoded.error.message


@given(st.sampled_from(["call_tool", "tool_call", "cancel", "acknowledge", "hello", "zip"]), fields)
def test_a_long_frame_is_decoded_like_a_short_one(op: str, rest: dict[str, object]) -> None:
    """The same frame, or the same error under the same id."""
    text = json.dumps({"op": op, **rest})
    assume("\\ud" not in text)  # a lone surrogate in an unknown field, which only the short decoder skips
    assert repr(decode_long_frame(text.encode())) == repr(decoded_frame(text))


@given(st.sampled_from(["call_tool", "tool_call", "cancel", "acknowledge", "hello", "zip"]), fields, st.booleans())
def test_a_frame_with_a_long_text_is_decoded_like_a_short_one(op: str, rest: dict[str, object], escaped: bool) -> None:
    """The same frame, or the same error under the same id."""
    frame = {"op": op, **rest}
    text = json.dumps(frame, ensure_ascii=escaped)
    assume("\\ud" not in text and text.isprintable())
    padded = json.dumps({"padding": "x" * LONG_BYTES, **frame}, ensure_ascii=escaped).encode(errors="surrogatepass")
    assert is_quick(padded)
    assert repr(decode_client_frame(padded)) == repr(decoded_frame(text))


@given(st.sampled_from(["call_tool", "tool_call", "cancel", "ping", "hello", "zip"]), fields, st.booleans())
def test_no_object_raises_and_every_refusal_is_json(op: str, rest: dict[str, object], escaped: bool) -> None:
    """Objects of any shape become frames, or errors that can be encoded."""
    frame = decode_client_frame(json.dumps({"op": op, **rest}, ensure_ascii=escaped).encode(errors="surrogatepass"))
    decoded = tool_call(frame, 60, make_id=lambda: "made") if isinstance(frame, CallTool) else frame
    if isinstance(decoded, FrameRefusal):
        msgspec.json.encode(decoded.error)
        msgspec.json.encode(decoded.request_id)
