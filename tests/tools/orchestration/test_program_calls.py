"""The calls of a program: by the functions' names, answered with data or an error that it can catch."""

from typing import Any

import pytest
from toold.protocol.error_codes import NotFoundError
from toold.protocol.tool_call import Metadata, TextContent, Timings, ToolResult
from toold.sandbox import ToolFailedError
from toold.tools.orchestration.program_calls import ProgramCalls


@pytest.fixture
def calls(context: Any, tools: Any) -> ProgramCalls:
    """Of a program over ``get``."""
    context.tools = {"get": tools("get")}
    return ProgramCalls(context, context.toolset_view.stubs)


def result(**fields: Any) -> ToolResult:
    """A child's result."""
    return ToolResult(Metadata(1.0, Timings()), **fields)


async def test_a_call_answers_its_data_or_its_text(calls: ProgramCalls, context: Any) -> None:
    """Each child has a name of its own, though the tool is the same."""
    context.results = {
        "1.get": result(outputs=(TextContent("words"),), structured={"a": 1}),
        "2.get": result(outputs=(TextContent("words"),)),
    }
    assert await calls("tools", "get", {"path": "x"}) == {"a": 1}
    assert await calls("tools", "get", {"path": "y"}) == "words"
    assert [(name, tool) for name, tool, *_ in context.called] == [("1.get", "get"), ("2.get", "get")]
    assert [(made["tool"], made["ok"]) for made in calls.made] == [("get", True), ("get", True)]


async def test_an_error_is_one_to_the_program(calls: ProgramCalls, context: Any) -> None:
    """With its code; the list of calls has it too."""
    context.results = {"1.get": result(error=NotFoundError("No such thing.").to_tool_error())}
    with pytest.raises(ToolFailedError) as raised:
        await calls("tools", "get", {"path": "x"})
    assert (raised.value.code, raised.value.message) == ("NOT_FOUND", "No such thing.")
    assert [(made["ok"], made["code"]) for made in calls.made] == [(False, "NOT_FOUND")]


async def test_a_function_that_is_not_there_is_no_call(calls: ProgramCalls, context: Any) -> None:
    """Nothing is called."""
    with pytest.raises(ToolFailedError, match=r"TOOL_NOT_FOUND: There is no tools.nope"):
        await calls("tools", "nope", {})
    assert (context.called, calls.made) == ([], [])
