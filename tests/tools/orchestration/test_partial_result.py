"""Composing calls that are cancelled: what was done is told all the same."""

import asyncio
from typing import Any

import pytest
from toold.protocol.error_codes import CallCancelledError
from toold.tools import bind
from toold.tools.orchestration import execute_batch, execute_pipeline
from toold.tools.orchestration.partial_result import MOST_BYTES, cut_off

ROOM = 20 * MOST_BYTES


@pytest.fixture
def ready(context: Any, calls: Any, tools: Any) -> Any:
    """A context whose calls are answered by what they say, and never where they say ``hang``."""

    async def answer(arguments: Any) -> Any:
        if arguments["value"] == "hang":
            await asyncio.Event().wait()
        return {"is": arguments["value"]}

    context.tools = {name: tools(name) for name in ("note", "put")}
    context.call = calls.call
    calls.answers.update(note=answer, put=answer)
    return context


async def cancelled(tool: Any, context: Any, calls: Any, hanging: int, **arguments: Any) -> CallCancelledError:
    """The error of a call that is cancelled as soon as so many of its parts hang and nothing else runs."""
    task = asyncio.create_task(tool.function(bind(tool, arguments), context))
    while sum(made["value"] == "hang" for _, _, made in calls.made) < hanging or calls.at_once > hanging:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(CallCancelledError) as raised:
        await task
    return raised.value


@pytest.mark.parametrize(("tool", "unknown"), [("put", 1), ("note", 0)])
async def test_a_cancelled_batch_tells_what_was_done(ready: Any, calls: Any, tool: str, unknown: int) -> None:
    """By item; a write that was cut off is unknown, and what was not begun is skipped."""
    items = [{"value": value} for value in ("a", "hang", "never")]
    options = {"concurrency": 1, "result_mode": "detail"}
    error = await cancelled(execute_batch, ready, calls, 1, tool_name=tool, items=items, options=options)
    done = (error.details or {})["so_far"]
    assert [done[name] for name in ("total", "succeeded", "failed", "unknown", "skipped")] == [
        *(3, 1, 1 - unknown, unknown, 1)
    ]
    assert done["results"] == [{"index": 0, "result": {"is": "a"}}]
    assert [(one["index"], one["error"]["code"]) for one in done["errors"]] == [(1, "CANCELLED")]


async def test_a_cancelled_pipeline_tells_what_was_done_and_how_to_go_on(ready: Any, calls: Any) -> None:
    """Each step's end, and the id of the run; a step that only waits has not run."""
    steps = [
        {"id": "a", "tool_name": "put", "args": {"value": 1}},
        {"id": "b", "tool_name": "put", "args": {"value": "hang"}, "when": "a IS_NOT_NULL"},
        {"id": "c", "tool_name": "note", "args": {"value": "hang"}, "when": "a IS_NOT_NULL"},
        {"id": "d", "tool_name": "put", "args": {"value": 2}, "delay_ms": 60_000},
        {"id": "e", "tool_name": "put", "args": {"value": "{{b}}"}},
    ]
    error = await cancelled(execute_pipeline, ready, calls, 2, steps=steps)
    details = error.details or {}
    assert details["run_id"] == ready.call_id
    assert "resume with details.run_id" in error.message
    done = details["so_far"]
    assert (done["success"], done["steps_completed"], done["stopped_because"]) == (False, 1, "it was cancelled")
    assert {name: one["state"] for name, one in done["step_results"].items()} == {
        "a": "succeeded",
        "b": "unknown",
        "c": "failed",
        "d": "not_run",
        "e": "not_run",
    }
    assert done["step_results"]["a"]["result"] == {"is": 1}


def test_what_is_too_large_for_an_error_is_left_out() -> None:
    """Results first, and errors only where that is not enough; how many there are stays."""
    large = "x" * (MOST_BYTES + 1)
    batch = {"total": 2, "errors": [{"index": 1}], "results": [{"index": 0, "result": large}]}
    error = cut_off(batch, ROOM)
    assert error.details == {"so_far": {"total": 2, "errors": [{"index": 1}]}}
    assert "but for what is too large" in error.message
    steps = {"a": {"state": "succeeded", "result": large}, "b": {"state": "failed", "error": {"message": large}}}
    assert cut_off({"result": 1, "step_results": steps}, ROOM, "call-1").details == {
        "so_far": {"step_results": {"a": {"state": "succeeded"}, "b": {"state": "failed"}}},
        "run_id": "call-1",
    }


def test_what_was_done_fits_into_the_frames_that_there_are() -> None:
    """Or the call would be told as one whose result is too large, and not as cancelled; how much was done stays."""
    results = [{"index": index, "result": "x" * 40} for index in range(70)]
    batch = cut_off({"total": 70, "succeeded": 70, "errors": [], "results": results}, 4096)
    assert batch.details == {"so_far": {"total": 70, "succeeded": 70, "errors": []}}
    steps = {f"step-{number}": {"state": "succeeded", "attempts": 1} for number in range(50)}
    pipeline = cut_off({"steps_completed": 50, "total_steps": 50, "step_results": steps}, 4096, "call-1")
    assert pipeline.details == {"so_far": {"steps_completed": 50, "total_steps": 50}, "run_id": "call-1"}
