"""``execute_tool``: invalid options are rejected before the tool runs, and no result is lost."""

from typing import Any

import pytest
from toold.protocol.error_codes import (
    CallError,
    CallTimeoutError,
    InvalidArgumentsError,
    ServiceUnavailableError,
    ToolNotFoundError,
)
from toold.protocol.tool_call import ApiResponse, ImageContent, Metadata, PartsOutcome, TextContent, Timings, ToolResult
from toold.tools import Tool, ToolOutput, bind
from toold.tools.orchestration import execute_tool

ROWS = [{"id": 1, "votes": 12}, {"id": 2, "votes": 5}, {"id": 3, "votes": 7}]


def result(structured: Any = None, text: str = "words") -> ToolResult:
    """The result of a child call; without data it contains only text."""
    metadata = Metadata(1.0, Timings())
    if structured is None:
        return ToolResult(metadata, (TextContent(text),))
    return ToolResult(metadata, (TextContent(text),), structured)


@pytest.fixture
def asked(context: Any, tools: Any) -> Any:
    """Return a function that calls ``execute_tool`` for ``get``, which returns the given result."""

    async def ask(answer: ToolResult, **options: Any) -> ToolOutput:
        chosen: Tool = tools("get")
        context.tools = {"get": chosen}
        context.results = {"get": answer}
        arguments = bind(execute_tool, {"tool_name": "get", "args": {"path": "x"}, "options": options or None})
        returned = await execute_tool.function(arguments, context)
        assert isinstance(returned, ToolOutput)
        return returned

    return ask


async def test_without_options_the_result_is_unchanged(asked: Any, context: Any) -> None:
    """The answer has the text and the data of the result; without data, the text is the data."""
    assert await asked(result(ROWS)) == ToolOutput("words", ROWS)
    assert await asked(result(text="only words")) == ToolOutput("only words", "only words")
    assert context.shaping is None


async def test_images_stay_images(asked: Any) -> None:
    """With options, image blocks are data that can be shaped."""
    picture = ImageContent("iVBORw==", "image/png")
    shown = ToolResult(Metadata(1.0, Timings()), (TextContent("words"), picture))
    assert await asked(shown) == ToolOutput(content=shown.outputs)
    assert await asked(shown, select_fields=["content[1].mimeType"]) != ToolOutput(content=shown.outputs)


async def test_the_answer_is_the_shaped_value(asked: Any, context: Any) -> None:
    """The metadata and a second text describe the shaping: models see the text, but often no metadata."""
    answer = await asked(result({"items": ROWS, "page": 1}), filter="votes > 5", sort=["-votes"], select_fields=["id"])
    assert answer == ToolOutput(
        None,
        {"items": [{"id": 1}, {"id": 3}], "page": 1},
        (TextContent("Shaped the list items: 3 rows, 2 match the filter."),),
    )
    assert context.shaping == {"list_at": "items", "rows_in": 3, "rows_matched": 2, "rows_out": 2}


async def test_options_are_checked_before_anything_runs(asked: Any, context: Any) -> None:
    """An invalid filter is rejected without calling the tool."""
    with pytest.raises(InvalidArgumentsError, match=r"options\.filter"):
        await asked(result(ROWS), filter="votes == 5")
    assert context.called == []


async def test_an_unknown_tool_is_rejected(context: Any) -> None:
    """The error is the same as for a direct call."""
    with pytest.raises(ToolNotFoundError):
        await execute_tool.function(bind(execute_tool, {"tool_name": "nothing"}), context)


@pytest.mark.parametrize("named", [False, True])
async def test_the_child_gets_its_own_timeout_or_that_of_the_caller(asked: Any, context: Any, named: bool) -> None:
    """If the caller gave a timeout, the child gets it minus the time for the answer."""
    context.has_explicit_timeout = named
    await asked(result(ROWS))
    ((name, tool, arguments, timeout_s),) = context.called
    assert (name, tool, arguments) == ("get", "get", {"path": "x"})
    if named:
        assert 25 < timeout_s < context.remaining()
    else:
        assert timeout_s is None


async def test_the_error_of_the_tool_is_the_error_of_the_call(asked: Any) -> None:
    """The error keeps ``executed``; the path of an argument gets the prefix ``args``."""
    refused = InvalidArgumentsError("get: path is missing.", details={"fields": {"path": "is missing"}})
    with pytest.raises(InvalidArgumentsError) as caught:
        await asked(ToolResult(Metadata(1.0, Timings()), error=refused.to_tool_error()))
    assert caught.value.details == {"fields": {"args.path": "is missing"}}
    late = CallTimeoutError("Too late.", retry_after_ms=5).to_tool_error(repeatable=True)
    with pytest.raises(CallTimeoutError) as timed_out:
        await asked(ToolResult(Metadata(1.0, Timings()), error=late))
    assert timed_out.value.to_tool_error() == late


async def test_a_result_that_cannot_be_shaped_is_retained(asked: Any, context: Any) -> None:
    """The tool has run, so the error contains the handle of its result."""
    with pytest.raises(InvalidArgumentsError) as caught:
        await asked(result({"a": [1], "b": [2]}), limit=1)
    error = caught.value.to_tool_error()
    assert (error.executed, error.retryable) == ("yes", False)
    assert "a, b" in error.message
    assert error.details is not None
    assert context.kept == {error.details["handle"]: {"a": [1], "b": [2]}}
    assert error.details["fields"].keys() == {"options"}


@pytest.mark.parametrize("options", [{"filter": "id = 2"}, {"limit": 1}, {"sort": ["-x"]}])
async def test_the_list_of_a_record_is_not_shaped(asked: Any, options: dict[str, Any]) -> None:
    """A contact's tags are neither removed nor cut; the error names them for ``at``."""
    with pytest.raises(InvalidArgumentsError, match=r"contact\.tags is part of a record, which also has contact\.id"):
        await asked(result({"contact": {"id": 1, "tags": ["a", "b"]}}), **options)


async def test_a_suggestion_ends_with_a_question_mark(asked: Any) -> None:
    """The message has no full stop after "did you mean 'items'?"."""
    with pytest.raises(InvalidArgumentsError, match=r"did you mean 'items'\? The tool has run; ") as caught:
        await asked(result({"items": [1]}), at="itms")
    assert caught.value.executed == "yes"


async def test_a_result_that_cannot_be_retained_is_in_the_error(asked: Any, context: Any) -> None:
    """A full disk does not lose a result that fits the error."""
    context.disk_refuses = ServiceUnavailableError("The result's file could not be written (No space left on device).")
    with pytest.raises(InvalidArgumentsError) as caught:
        await asked(result({"a": [1], "b": [2]}), limit=1)
    assert (caught.value.details or {})["result"] == {"a": [1], "b": [2]}


@pytest.mark.parametrize("file_format", ["json", "ndjson", "csv"])
async def test_a_file_is_returned_as_a_handle(asked: Any, context: Any, file_format: str) -> None:
    """The file contains the matching rows, and its handle is the call id."""
    answer = await asked(result({"items": ROWS}), filter="votes > 5", return_mode="file", format=file_format)
    assert (answer.data["handle"], answer.data["count"], answer.data["format"]) == (context.call_id, 2, file_format)
    assert context.kept == {context.call_id: [ROWS[0], ROWS[2]]}


async def test_a_file_that_cannot_be_written_causes_an_error_with_the_result(asked: Any, context: Any) -> None:
    """The error says that the tool has run and is not retryable."""
    context.disk_refuses = ServiceUnavailableError("The result's file could not be written (No space left on device).")
    with pytest.raises(CallError) as caught:
        await asked(result(ROWS), limit=1, return_mode="file")
    error = caught.value.to_tool_error()
    assert (error.code, error.executed, error.retryable) == ("SERVICE_UNAVAILABLE", "yes", False)
    assert error.details == {"result": [ROWS[0]]}
    assert "No space left on device" in error.message


async def test_a_summary_is_returned(asked: Any) -> None:
    """The summary contains the number of rows and the types of their fields."""
    answer = await asked(result(ROWS), return_mode="summary")
    assert (answer.data["count"], answer.data["fields"]) == (3, {"id": ["number"], "votes": ["number"]})


async def test_a_selected_text_is_returned_as_text(asked: Any) -> None:
    """A text that ``at`` selects becomes both the text and the data of the answer."""
    assert await asked(result({"a": {"b": "found"}}), at="a.b") == ToolOutput("found", "found")


def test_execute_tool_has_no_restricting_annotations() -> None:
    """The tool may be destructive and open-world, and it is an orchestration tool."""
    annotations = execute_tool.annotations
    assert (annotations.read_only_hint, annotations.destructive_hint, annotations.open_world_hint) == (
        False,
        True,
        True,
    )
    assert execute_tool.orchestration


async def test_the_outcome_of_parts_is_passed_on(asked: Any, context: Any) -> None:
    """A pipeline that failed is answered with its report, and a call that contains this one learns that it failed."""
    parts = PartsOutcome("failed", "step 'a' failed")
    answer = ToolResult(Metadata(1.0, Timings(), parts=parts), (), {"success": False})
    assert (await asked(answer, select_fields=["success"])).data == {"success": False}
    assert context.parts == parts


async def test_the_next_page_is_passed_on(asked: Any, context: Any) -> None:
    """In the metadata, and with options as a text, which the shaped value lacks."""
    response = ApiResponse(200, {"link": "<?page=2>"}, "abc")
    note = TextContent("There is a next page: repeat the call with next_page = 'abc'.")
    answer = ToolResult(Metadata(1.0, Timings(), response=response), (TextContent("[…]"), note), ROWS)
    assert (await asked(answer)).text == f"[…]\n{note.text}"
    shaped = await asked(answer, limit=1)
    assert (shaped.data, shaped.blocks[-1]) == (ROWS[:1], note)
    assert context.response == response
