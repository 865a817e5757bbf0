"""The limits of a run: time, concurrency, memory and answer size."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.error_codes import CallCancelledError
from toold.tools import bind
from toold.tools.orchestration import execute_batch, execute_pipeline
from toold.tools.orchestration.run_limits import (
    ANSWER_S,
    MAX_PARTIAL_ANSWER_BYTES,
    ResultBudget,
    bounded_map,
    cancellation_error,
    time_left,
)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_remaining_time_decreases_to_zero() -> None:
    """The remaining time starts at the timeout and never becomes negative."""
    clock = Clock()
    left = time_left(10.0, 60.0, clock)
    assert left() == 10.0
    clock.now += 4.0
    assert left() == 6.0
    clock.now += 40.0
    assert left() == 0.0


@given(st.floats(0.01, 300), st.floats(0.01, 1800))
def test_time_is_reserved_for_the_answer(timeout_s: float, call_left_s: float) -> None:
    """The parts never get more than their timeout, and some time of the call remains for its answer."""
    left_s = time_left(timeout_s, call_left_s, Clock())()
    assert 0 < left_s <= timeout_s + 1e-6
    assert left_s <= max(call_left_s - ANSWER_S, call_left_s * 0.8) + 1e-6


@given(st.lists(st.integers(), max_size=30), st.integers(1, 10))
def test_results_have_the_order_of_the_items(items: list[int], at_once: int) -> None:
    """The order does not depend on the concurrency."""

    async def work(index: int, item: int) -> tuple[int, int]:
        await asyncio.sleep(0)
        return index, item

    done = asyncio.run(bounded_map(items, work, concurrency=at_once, may_start=lambda: True))
    assert done == list(enumerate(items))


async def test_the_next_item_starts_when_one_ends() -> None:
    """A slow item does not delay other items."""
    slow, begun = asyncio.Event(), list[int]()

    async def work(index: int, item: int) -> None:
        begun.append(index)
        if index == 0:
            await slow.wait()
        if index == 9:
            slow.set()

    async with asyncio.timeout(10):
        await bounded_map(range(10), work, concurrency=2, may_start=lambda: True)
    assert begun == list(range(10))


async def test_concurrency_is_limited() -> None:
    """At most ``concurrency`` items run at the same time."""
    now = max_bytes = 0

    async def work(index: int, item: int) -> None:
        nonlocal now, max_bytes
        now += 1
        max_bytes = max(max_bytes, now)
        await asyncio.sleep(0)
        now -= 1

    await bounded_map(range(20), work, concurrency=3, may_start=lambda: True)
    assert max_bytes == 3


async def test_an_item_that_was_not_started_has_no_result() -> None:
    """After ``may_start`` returns False, no item starts, and running items finish."""
    done = list[int]()

    async def work(index: int, item: int) -> int:
        await asyncio.sleep(0)
        done.append(index)
        return index

    assert await bounded_map(range(6), work, concurrency=2, may_start=lambda: len(done) < 2) == [
        0,
        1,
        2,
        None,
        None,
        None,
    ]


async def test_cancellation_cancels_the_running_items() -> None:
    """No item is running afterwards."""
    ended = list[int]()

    async def work(index: int, item: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(index)

    task = asyncio.create_task(bounded_map(range(5), work, concurrency=2, may_start=lambda: True))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(ended) == [0, 1]


def test_a_rejected_result_does_not_use_the_budget() -> None:
    """The error of a result that is too large says that the tool ran; a smaller result still fits."""
    room = ResultBudget(100)
    assert room.spend("x" * 60) is None
    refused = room.spend("x" * 60)
    assert refused is not None
    assert (refused.code, refused.executed, refused.retryable) == ("RESULT_TOO_LARGE", "yes", False)
    assert room.spend("x" * 40) is None
    assert room.spend("x") is not None


ROOM = 20 * MAX_PARTIAL_ANSWER_BYTES


@pytest.fixture
def ready(context: Any, calls: Any, tools: Any) -> Any:
    """A context whose calls return their arguments, or never return if the value is ``hang``."""

    async def answer(arguments: Any) -> Any:
        if arguments["value"] == "hang":
            await asyncio.Event().wait()
        return {"is": arguments["value"]}

    context.tools = {name: tools(name) for name in ("note", "put")}
    context.call = calls.call
    calls.answers.update(note=answer, put=answer)
    return context


async def cancelled(tool: Any, context: Any, calls: Any, hanging: int, **arguments: Any) -> CallCancelledError:
    """Cancel a call when ``hanging`` of its parts hang and no other part runs, and return the error."""
    task = asyncio.create_task(tool.function(bind(tool, arguments), context))
    while sum(made["value"] == "hang" for _, _, made in calls.made) < hanging or calls.at_once > hanging:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(CallCancelledError) as raised:
        await task
    return raised.value


@pytest.mark.parametrize(("tool", "unknown"), [("put", 1), ("note", 0)])
async def test_a_cancelled_batch_reports_its_progress(ready: Any, calls: Any, tool: str, unknown: int) -> None:
    """The report is per item: an interrupted write is unknown, and an item that was not started is skipped."""
    items = [{"value": value} for value in ("a", "hang", "never")]
    options = {"concurrency": 1, "result_mode": "detail"}
    error = await cancelled(execute_batch, ready, calls, 1, tool_name=tool, items=items, options=options)
    done = (error.details or {})["so_far"]
    assert [done[name] for name in ("total", "succeeded", "failed", "unknown", "skipped")] == [
        *(3, 1, 1 - unknown, unknown, 1)
    ]
    assert done["results"] == [{"index": 0, "result": {"is": "a"}}]
    assert [(one["index"], one["error"]["code"]) for one in done["errors"]] == [(1, "CANCELLED")]


async def test_a_cancelled_pipeline_reports_its_progress_and_how_to_resume(ready: Any, calls: Any) -> None:
    """The error contains the state of each step and the run id; a step that was still waiting has not run."""
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
    assert "resume set to details.run_id" in error.message
    done = details["so_far"]
    assert (done["success"], done["steps_completed"], done["stop_reason"]) == (False, 1, "it was cancelled")
    assert {name: one["state"] for name, one in done["step_results"].items()} == {
        "a": "succeeded",
        "b": "unknown",
        "c": "failed",
        "d": "not_run",
        "e": "not_run",
    }
    assert done["step_results"]["a"]["result"] == {"is": 1}


def test_large_parts_are_omitted_from_the_error() -> None:
    """Results are omitted first, and errors only if necessary; the counts remain."""
    large = "x" * (MAX_PARTIAL_ANSWER_BYTES + 1)
    batch = {"total": 2, "errors": [{"index": 1}], "results": [{"index": 0, "result": large}]}
    error = cancellation_error(batch, ROOM)
    assert error.details == {"so_far": {"total": 2, "errors": [{"index": 1}]}}
    assert "without parts that are too large" in error.message
    steps = {"a": {"state": "succeeded", "result": large}, "b": {"state": "failed", "error": {"message": large}}}
    assert cancellation_error({"result": 1, "step_results": steps}, ROOM, "call-1").details == {
        "so_far": {"step_results": {"a": {"state": "succeeded"}, "b": {"state": "failed"}}},
        "run_id": "call-1",
    }


def test_the_progress_report_fits_the_frame_size() -> None:
    """If the report were too large, the call would fail with RESULT_TOO_LARGE instead of CANCELLED.

    The counts remain.
    """
    results = [{"index": index, "result": "x" * 40} for index in range(70)]
    batch = cancellation_error({"total": 70, "succeeded": 70, "errors": [], "results": results}, 4096)
    assert batch.details == {"so_far": {"total": 70, "succeeded": 70, "errors": []}}
    steps = {f"step-{number}": {"state": "succeeded", "attempts": 1} for number in range(50)}
    pipeline = cancellation_error({"steps_completed": 50, "total_steps": 50, "step_results": steps}, 4096, "call-1")
    assert pipeline.details == {"so_far": {"steps_completed": 50, "total_steps": 50}, "run_id": "call-1"}
