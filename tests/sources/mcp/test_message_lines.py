"""Lines of a server's output: messages, and errors in place of unreadable answers."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCError, JSONRPCResponse
from toold.sources.mcp.message_lines import read_line, request_id_of
from toold.sources.mcp.upstream_exchange import UNREADABLE


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc": "2.0", "id": 7, "result": {"text": "\xff"}}',
        b'{"jsonrpc": "2.0", "id": 7, "result": {"deep": ' + b"[" * 50_000 + b"]" * 50_000 + b"}}",
        b'{"jsonrpc": "2.0", "id": 7, "result": {"number": ' + b"9" * 5000 + b"}}",
        b'{"jsonrpc": "2.0", "id": 7, "result": [1]}',
        b'{"jsonrpc": "2.0", "id": 7, "error": {"code": "x"}}',
        b'{"id": 7, "result": {}}',
        b'{"result": {"id": 9, "text": "\xff"}, "id": 7}',
    ],
    ids=["utf-8", "deep", "number", "list", "error", "version", "id last"],
)
def test_an_unreadable_answer_is_an_error(line: bytes) -> None:
    """For its request, at once."""
    message = read_line(line)
    assert message is not None
    error = message.message
    assert isinstance(error, JSONRPCError)
    assert (error.id, error.error.code) == (7, UNREADABLE)


def test_a_lone_surrogate_is_replaced() -> None:
    """By U+FFFD: JavaScript programs write such escapes when they truncate text."""
    message = read_line(b'{"jsonrpc": "2.0", "id": 7, "result": {"text": "a \\ud83d", "rest": "\\ud83d\\ude00"}}')
    assert message is not None
    answer = message.message
    assert isinstance(answer, JSONRPCResponse)
    assert answer.result == {"text": "a \ufffd", "rest": "\U0001f600"}


@pytest.mark.parametrize(
    "line",
    [
        b"listening on port 80",
        b"",
        b'{"id": 7, "level": "info"}',
        b'{"jsonrpc": "2.0", "id": 7, "method": "x", "params": "\xff", "result": 1}',
        b'{"jsonrpc": "2.0", "method": "x", "params": {"id": 7}, "bad": "\xff"}',
        b'{"jsonrpc": "2.0", "result": {"id": 7, "bad": "\xff"}}',
        b'[{"jsonrpc": "2.0", "id": 7, "result": {}}]',
    ],
    ids=["text", "empty", "log", "request", "notification", "no id", "batch"],
)
def test_a_line_without_a_request_is_ignored(line: bytes) -> None:
    """Even if it contains the number of a running call."""
    assert read_line(line) is None


def test_nan_is_accepted() -> None:
    """Some languages write NaN, which JSON does not have."""
    message = read_line(b'{"jsonrpc": "2.0", "id": 7, "result": {"number": NaN}}')
    assert message is not None
    assert isinstance(message.message, JSONRPCResponse)


@given(
    request_id=st.one_of(st.integers(0, 10**17), st.text("abc-9", min_size=1, max_size=50)),
    result=st.recursive(
        st.text(max_size=5) | st.integers(), lambda inner: st.dictionaries(st.text(max_size=3), inner), max_leaves=8
    ),
    order=st.permutations(["jsonrpc", "id", "result"]),
)
def test_the_request_id_of_an_answer_is_found(request_id: Any, result: Any, order: list[str]) -> None:
    """Nested ids, and brackets and quotes in strings, are ignored."""
    parts = {"jsonrpc": "2.0", "id": request_id, "result": {"id": 5, "in": result, "text": '"id": 6, {['}}
    line = json.dumps({key: parts[key] for key in order}).encode()
    assert request_id_of(line, b"") == request_id


def test_a_string_full_of_quotes_is_scanned_once() -> None:
    """If the head ends within a string, scanning stops there."""
    assert request_id_of(b'{"id": 7, "x": "' + b'\\"' * 32_000, b"") is None


def test_an_answer_with_too_many_values_is_an_error() -> None:
    """It is not decoded."""
    message = read_line(b'{"jsonrpc":"2.0","id":7,"result":{"a":[%b0]}}' % (b"0," * 100_001))
    assert message is not None
    assert isinstance(message.message, JSONRPCError)
    assert (message.message.id, message.message.error.code) == (7, UNREADABLE)
    assert message.message.error.message == "it has more than 100,000 values"
