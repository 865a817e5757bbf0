"""``tools/call`` as a call."""

import pytest
from toold.protocol.error_codes import InvalidArgumentsError, ToolNotFoundError
from toold.protocol.mcp.json_rpc import INVALID_PARAMS, MessageProblem, RpcRequest
from toold.protocol.mcp.mcp_call import TIMEOUT_KEY, fault_of_request, read_call
from toold.protocol.tool_call import ToolCall


def test_a_call() -> None:
    """Name and arguments are the request's, the id is the one given, and aliases of names are seen through."""
    request = RpcRequest(
        1, "tools/call", {"name": "echo_EXAI-WS", "arguments": {"text": "x"}, "_meta": {TIMEOUT_KEY: 5}}
    )
    assert read_call(request, "c", 9) == ToolCall("c", "echo", {"text": "x"}, 5, 9)
    assert read_call(RpcRequest(1, "tools/call", {"name": "echo"}), "c", 9) == ToolCall("c", "echo", {}, None, 9)


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
def test_what_is_no_call(params: dict[str, object]) -> None:
    """Says which parameter is wrong."""
    problem = read_call(RpcRequest(1, "tools/call", params), "c", 9)
    assert isinstance(problem, MessageProblem)
    assert problem.code == INVALID_PARAMS
    assert problem.message.startswith("params.")


def test_whose_fault_it_is() -> None:
    """A tool that is not there is the request's, with what the daemon suggests; wrong arguments are an answer."""
    missing = ToolNotFoundError("There is none.", details={"suggestions": ["echo"]}).to_tool_error()
    assert fault_of_request(missing) == MessageProblem(INVALID_PARAMS, "There is none.", missing)
    assert fault_of_request(InvalidArgumentsError("text: missing").to_tool_error()) is None
    assert fault_of_request(None) is None
