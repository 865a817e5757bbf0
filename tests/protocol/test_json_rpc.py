"""Decoding and encoding JSON-RPC messages."""

import json
from typing import Any

import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import jsonrpc
from toold.protocol import json_rpc
from toold.protocol.json_rpc import MalformedMessage, MessageProblem, RpcNotification, RpcReply, RpcRequest, decode


def test_requests_and_notifications() -> None:
    """A message with an id needs an answer, one without does not; parameters are optional."""
    assert decode(b'{"jsonrpc":"2.0","id":7,"method":"ping"}') == RpcRequest(7, "ping", {})
    assert decode(b'{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1},"y":0}') == RpcRequest("a", "m", {"x": 1})
    assert decode(b'{"jsonrpc":"2.0","method":"notifications/initialized"}') == RpcNotification(
        "notifications/initialized", {}
    )
    assert decode(b'{"jsonrpc":"2.0","id":1,"result":{}}') == RpcReply(1, {})
    assert decode(b'{"jsonrpc":"2.0","id":1,"error":{}}') == RpcReply(1, None, {})


def test_batch() -> None:
    """Each message of an array is decoded separately."""
    batch = decode(b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"n"},7]')
    assert isinstance(batch, list)
    assert [type(item) for item in batch] == [RpcRequest, RpcNotification, MalformedMessage]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"nonsense",
        b'{"jsonrpc":"2.0",}',
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":"\xff"}}',
        b'[{"jsonrpc":"2.0","id":1,"method":"\xff"}]',
    ],
)
def test_invalid_json(body: bytes) -> None:
    """Reported as a parse error of the message, which may be a body or a line."""
    decoded = decode(body)
    assert isinstance(decoded, MalformedMessage)
    assert (decoded.problem.code, decoded.id) == (jsonrpc.PARSE_ERROR, None)
    assert "body" not in decoded.problem.message
    assert "message" in decoded.problem.message


@pytest.mark.parametrize(
    ("body", "request_id", "why"),
    [
        (rb'{"jsonrpc":"2.0","id":7,"method":"m","params":{"text":"\ud83d"}}', 7, "unpaired surrogate"),
        (rb'{"jsonrpc":"2.0","id":"\ud83d","method":"m"}', None, "unpaired surrogate"),
        (rb'{"jsonrpc":"2.0","id":"a","method":"m","params":{"n":1e999}}', "a", "out of range"),
        (rb'{"jsonrpc":"2.0","id":"a","method":"m","params":{"n":NaN}}', "a", "not JSON"),
        (rb'[{"jsonrpc":"2.0","id":7,"method":"\ud83d"}]', None, "unpaired surrogate"),
    ],
)
def test_unreadable_messages_are_answered_under_their_id(body: bytes, request_id: object, why: str) -> None:
    """If a laxer parser finds an id: a call with half an emoji is answered too."""
    decoded = decode(body)
    assert isinstance(decoded, MalformedMessage)
    assert (decoded.problem.code, decoded.id) == (jsonrpc.PARSE_ERROR, request_id)
    assert why in decoded.problem.message
    json_rpc.failure(decoded.id, decoded.problem)


def test_messages_with_many_values_are_not_parsed_twice() -> None:
    """A second parse of millions of values would delay other clients; long strings are cheap."""
    long, many = b'"' + b"x" * 2_000_000 + b'"', b"[0" + b",0" * 100_000 + b"]"
    decoded = [
        decode(rb'{"jsonrpc":"2.0","id":7,"method":"\ud83d","params":{"a":' + item + b"}}") for item in (long, many)
    ]
    assert [item.id for item in decoded if isinstance(item, MalformedMessage)] == [7, None]


@pytest.mark.parametrize(
    ("value", "request_id"),
    [
        ({"id": 3, "method": "ping"}, 3),
        ({"jsonrpc": "1.0", "id": "x", "method": "ping"}, "x"),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": 3, "method": 7}, 3),
        ({"jsonrpc": "2.0", "id": 3, "method": "m", "params": []}, 3),
        ({"jsonrpc": "2.0", "id": 3}, 3),
        ({"jsonrpc": "2.0"}, None),
        (7, None),
        (None, None),
    ],
)
def test_invalid_messages(value: Any, request_id: object) -> None:
    """Reported as an invalid request, under the id if it is readable."""
    decoded = decode(json.dumps(value).encode())
    assert isinstance(decoded, MalformedMessage)
    assert (decoded.problem.code, decoded.id) == (jsonrpc.INVALID_REQUEST, request_id)


KEYS = st.sampled_from(["jsonrpc", "id", "method", "params", "result"]) | st.text()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
    max_leaves=8,
)


@given(st.binary() | VALUES.map(lambda value: json.dumps(value).encode()))
def test_decoding_never_raises(body: bytes) -> None:
    """Any body yields a message or an error."""
    decoded = decode(body)
    assert isinstance(decoded, list | RpcRequest | RpcNotification | RpcReply | MalformedMessage)


def test_answers_match_the_sdk_types() -> None:
    """The official types accept results, errors and notifications."""
    adapter = jsonrpc.jsonrpc_message_adapter
    assert isinstance(adapter.validate_json(json_rpc.answer(1, {"a": 1})), jsonrpc.JSONRPCResponse)
    error = adapter.validate_json(json_rpc.failure("x", MessageProblem(-32602, "no", {"a": 1})))
    assert isinstance(error, jsonrpc.JSONRPCError)
    assert (error.id, error.error.code, error.error.data) == ("x", -32602, {"a": 1})
    assert json.loads(json_rpc.failure(None, MessageProblem(-32700, "no"))) == {
        "id": None,
        "error": {"code": -32700, "message": "no"},
        "jsonrpc": "2.0",
    }
    assert isinstance(adapter.validate_json(json_rpc.notification("n", {})), jsonrpc.JSONRPCNotification)


def test_error_codes_match_the_specification() -> None:
    """The codes are the SDK's, and each has an HTTP status."""
    names = {
        "MISSING_CLIENT_CAPABILITY": "MISSING_REQUIRED_CLIENT_CAPABILITY",
        "UNSUPPORTED_VERSION": "UNSUPPORTED_PROTOCOL_VERSION",
    }
    for name in (
        "PARSE_ERROR",
        "INVALID_REQUEST",
        "METHOD_NOT_FOUND",
        "INVALID_PARAMS",
        "INTERNAL_ERROR",
        "HEADER_MISMATCH",
        *names,
    ):
        code = getattr(json_rpc, name)
        assert code == getattr(mcp_types.jsonrpc, names.get(name, name))
        assert code in json_rpc.HTTP_STATUS


def test_an_event_is_one_message() -> None:
    """Line breaks within strings are escaped, so none ends the event."""
    event = json_rpc.event(json_rpc.notification("n", {"text": "one\ntwo\r\n\n"}))
    assert event.endswith(b"\n\n")
    assert event.count(b"\n") == 3
    assert b"\r" not in event
