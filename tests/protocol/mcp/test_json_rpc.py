"""Bytes to messages and back."""

import json
from typing import Any

import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import jsonrpc
from toold.protocol.mcp import json_rpc
from toold.protocol.mcp.json_rpc import MalformedMessage, MessageProblem, RpcNotification, RpcReply, RpcRequest, decode


def test_requests_and_notifications() -> None:
    """A message with an id is owed an answer, one without is not; parameters may be left out."""
    assert decode(b'{"jsonrpc":"2.0","id":7,"method":"ping"}') == RpcRequest(7, "ping", {})
    assert decode(b'{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1},"y":0}') == RpcRequest("a", "m", {"x": 1})
    assert decode(b'{"jsonrpc":"2.0","method":"notifications/initialized"}') == RpcNotification(
        "notifications/initialized", {}
    )
    assert decode(b'{"jsonrpc":"2.0","id":1,"result":{}}') == RpcReply(1, {})
    assert decode(b'{"jsonrpc":"2.0","id":1,"error":{}}') == RpcReply(1, None)


def test_a_batch() -> None:
    """Each message of an array is judged by itself."""
    batch = decode(b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"n"},7]')
    assert isinstance(batch, list)
    assert [type(one) for one in batch] == [RpcRequest, RpcNotification, MalformedMessage]


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
def test_what_is_no_json(body: bytes) -> None:
    """It is told as a parse error of the message: it came as a body, or as a line, which has none."""
    found = decode(body)
    assert isinstance(found, MalformedMessage)
    assert (found.problem.code, found.id) == (jsonrpc.PARSE_ERROR, None)
    assert "body" not in found.problem.message
    assert "message" in found.problem.message


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
def test_what_cannot_be_read_is_told_under_its_id(body: bytes, request_id: object, why: str) -> None:
    """Where a laxer parser finds one: a call that a model wrote half of an emoji into is answered too."""
    found = decode(body)
    assert isinstance(found, MalformedMessage)
    assert (found.problem.code, found.id) == (jsonrpc.PARSE_ERROR, request_id)
    assert why in found.problem.message
    json_rpc.failure(found.id, found.problem)


def test_of_very_many_values_no_id_is_looked_for() -> None:
    """To read millions once more would hold up everybody else; a long text is no such thing."""
    long, many = b'"' + b"x" * 2_000_000 + b'"', b"[0" + b",0" * 100_000 + b"]"
    found = [
        decode(rb'{"jsonrpc":"2.0","id":7,"method":"\ud83d","params":{"a":' + given + b"}}") for given in (long, many)
    ]
    assert [one.id for one in found if isinstance(one, MalformedMessage)] == [7, None]


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
def test_what_is_no_message(value: Any, request_id: object) -> None:
    """It is told as an invalid request, under its id where that can be read."""
    found = decode(json.dumps(value).encode())
    assert isinstance(found, MalformedMessage)
    assert (found.problem.code, found.id) == (jsonrpc.INVALID_REQUEST, request_id)


KEYS = st.sampled_from(["jsonrpc", "id", "method", "params", "result"]) | st.text()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
)


@given(st.binary() | VALUES.map(lambda value: json.dumps(value).encode()))
def test_reading_never_raises(body: bytes) -> None:
    """Whatever is posted, there is something to say about it."""
    found = decode(body)
    assert isinstance(found, list | RpcRequest | RpcNotification | RpcReply | MalformedMessage)


def test_answers_are_the_sdks_messages() -> None:
    """Results, errors and notifications are what the official types take for one."""
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


def test_the_codes_are_the_specifications() -> None:
    """They are the SDK's, and each has a status for HTTP."""
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
    """Line breaks within a message's strings are escaped, so that none ends the event."""
    event = json_rpc.event(json_rpc.notification("n", {"text": "one\ntwo\r\n\n"}))
    assert event.endswith(b"\n\n")
    assert event.count(b"\n") == 3
    assert b"\r" not in event
