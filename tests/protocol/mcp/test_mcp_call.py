"""Parsing ``tools/call``, and progress notifications."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.error_codes import InvalidArgumentsError, ToolNotFoundError
from toold.protocol.json_rpc import INVALID_PARAMS, MessageProblem, RpcRequest
from toold.protocol.mcp.mcp_call import TIMEOUT_KEY, ProgressCounter, parse_call, request_error
from toold.protocol.tool_call import Progress, ToolCall


def test_a_call() -> None:
    """Name and arguments are the request's, the id is the given one, and name aliases are resolved."""
    request = RpcRequest(
        1, "tools/call", {"name": "echo_EXAI-WS", "arguments": {"text": "x"}, "_meta": {TIMEOUT_KEY: 5}}
    )
    assert parse_call(request, "c", 9) == ToolCall("c", "echo", {"text": "x"}, 5, 9)
    assert parse_call(RpcRequest(1, "tools/call", {"name": "echo"}), "c", 9) == ToolCall("c", "echo", {}, None, 9)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": ""},
        {"name": 7},
        {"name": "echo", "arguments": []},
        {"name": "echo", "_meta": {TIMEOUT_KEY: 0}},
        {"name": "echo", "_meta": {TIMEOUT_KEY: True}},
    ],
)
def test_invalid_calls(params: dict[str, object]) -> None:
    """The error names the invalid parameter."""
    problem = parse_call(RpcRequest(1, "tools/call", params), "c", 9)
    assert isinstance(problem, MessageProblem)
    assert problem.code == INVALID_PARAMS
    assert problem.message.startswith("params.")


def test_only_unknown_tools_are_request_errors() -> None:
    """An unknown tool is an error of the request, with suggestions; invalid arguments are a tool result."""
    missing = ToolNotFoundError("There is none.", details={"suggestions": ["echo"]}).to_tool_error()
    assert request_error(missing) == MessageProblem(INVALID_PARAMS, "There is none.", missing)
    assert request_error(InvalidArgumentsError("text: missing").to_tool_error()) is None
    assert request_error(None) is None


@given(st.lists(st.none() | st.floats(min_value=0, max_value=1e12), min_size=1))
def test_progress_increases(numbers: list[float | None]) -> None:
    """With every notification, whatever the tool counts: clients may reject smaller values."""
    counter = ProgressCounter()
    sent = [counter.count(Progress("m", done, 100.0), "t")["progress"] for done in numbers]
    assert sent == sorted(set(sent))


def test_the_tools_numbers_are_forwarded() -> None:
    """Unchanged while they increase, from 0 on; without numbers, the notifications are counted."""
    counter = ProgressCounter()
    sent = [counter.count(Progress("m", done, 100), 7) for done in (0, 50, 100)]
    assert [item["progress"] for item in sent] == [0, 50, 100]
    assert sent[0] == {"progressToken": 7, "progress": 0, "message": "m", "total": 100}
    counter = ProgressCounter()
    assert [counter.count(Progress("m"), 7)["progress"] for _ in range(3)] == [1, 2, 3]
