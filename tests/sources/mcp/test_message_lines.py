"""Lines of a server's output: messages, and errors in place of answers that cannot be read."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCError, JSONRPCResponse
from toold.sources.mcp.message_lines import UNREADABLE, answered, read_line


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
def test_an_answer_that_cannot_be_read_is_an_error(line: bytes) -> None:
    """For the one that waits for it, at once."""
    message = read_line(line)
    assert message is not None
    error = message.message
    assert isinstance(error, JSONRPCError)
    assert (error.id, error.error.code) == (7, UNREADABLE)


def test_half_of_a_character_spoils_no_answer() -> None:
    """U+FFFD stands for it: programs in JavaScript write such where they cut a text."""
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
def test_what_answers_nobody_is_nobodys(line: bytes) -> None:
    """Least of all a call's that happens to have such a number."""
    assert read_line(line) is None


def test_what_is_no_number_is_read_all_the_same() -> None:
    """Some languages write NaN, which JSON has not."""
    message = read_line(b'{"jsonrpc": "2.0", "id": 7, "result": {"number": NaN}}')
    assert message is not None
    assert isinstance(message.message, JSONRPCResponse)


@given(
    identity=st.one_of(st.integers(0, 10**17), st.text("abc-9", min_size=1, max_size=50)),
    result=st.recursive(st.text(max_size=5) | st.integers(), lambda inner: st.dictionaries(st.text(max_size=3), inner)),
    order=st.permutations(["jsonrpc", "id", "result"]),
)
def test_an_answers_id_is_found_whatever_is_in_it(identity: Any, result: Any, order: list[str]) -> None:
    """Ids within, and brackets and quotes in texts, are not taken for it."""
    parts = {"jsonrpc": "2.0", "id": identity, "result": {"id": 5, "in": result, "text": '"id": 6, {['}}
    line = json.dumps({key: parts[key] for key in order}).encode()
    assert answered(line, b"") == identity


def test_a_text_full_of_quotes_is_gone_through_once() -> None:
    """Where the begin is cut off within a text, nothing after that is looked at."""
    assert answered(b'{"id": 7, "x": "' + b'\\"' * 32_000, b"") is None
