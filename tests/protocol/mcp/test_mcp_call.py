"""Parsing ``tools/call``, and progress notifications."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.error_codes import InvalidArgumentsError, ToolExecutionError, ToolNotFoundError
from toold.protocol.json_rpc import INVALID_PARAMS, MISSING_CLIENT_CAPABILITY, MessageProblem, RpcRequest
from toold.protocol.mcp.mcp_call import TIMEOUT_KEY, ProgressCounter, parse_call, parse_method_call, request_error
from toold.protocol.mcp.mcp_revision import REVISIONS
from toold.protocol.questions.client_question import QuestionKind, UndeclaredCapabilityError, kinds_declared
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


def test_the_rounds_of_a_method_have_the_same_arguments() -> None:
    """State and answers are not among them, so that a repeated request is recognized."""
    params = {"name": "greeting", "_meta": {}}
    first = parse_method_call(RpcRequest(1, "prompts/get", params), "c", 9, answers=("form",))
    assert first == ToolCall("c", "prompts/get", {"name": "greeting"}, None, 9, answers=("form",))
    params = {**params, "requestState": "s", "inputResponses": {"a": {}}}
    assert parse_method_call(RpcRequest(2, "prompts/get", params), "c", 9, answers=("form",)) == first


def test_only_unknown_tools_are_request_errors() -> None:
    """An unknown tool is an error of the request, with suggestions; invalid arguments are a tool result."""
    missing = ToolNotFoundError("There is none.", details={"suggestions": ["echo"]}).to_tool_error()
    for revision in REVISIONS.values():
        assert request_error(missing, revision) == MessageProblem(INVALID_PARAMS, "There is none.", missing)
        assert request_error(InvalidArgumentsError("text: missing").to_tool_error(), revision) is None
        assert request_error(None, revision) is None


@pytest.mark.parametrize(
    ("kind", "required"),
    [
        ("form", {"elicitation": {"form": {}}}),
        ("url", {"elicitation": {"url": {}}}),
        ("sampling", {"sampling": {}}),
        ("sampling_tools", {"sampling": {"tools": {}}}),
        ("roots", {"roots": {}}),
    ],
)
def test_a_missing_capability_is_a_request_error_where_the_revision_has_one(
    kind: QuestionKind, required: dict[str, Any]
) -> None:
    """Only in 2026-07-28, with the capabilities that the client would have to declare, which allow the question."""
    error = UndeclaredCapabilityError("It cannot.", kind).to_tool_error()
    for revision in REVISIONS.values():
        problem = request_error(error, revision)
        assert (problem is not None) is revision.stateless
        if problem is not None:
            assert (problem.code, problem.message) == (MISSING_CLIENT_CAPABILITY, "It cannot.")
            assert problem.data["requiredCapabilities"] == required
            assert kind in kinds_declared(problem.data["requiredCapabilities"])


@pytest.mark.parametrize(
    "details", [{"requiredCapabilities": {"all": {}}}, {"requiredCapabilities": 1}, {"x": 1}, None]
)
def test_other_details_name_no_capability(details: dict[str, Any] | None) -> None:
    """An error of a source cannot make one up that MCP's questions do not need."""
    error = ToolExecutionError("It failed.", details=details).to_tool_error()
    assert request_error(error, REVISIONS["2026-07-28"]) is None


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
