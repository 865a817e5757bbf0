"""Batch runs without a daemon."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toold.protocol.error_codes import CallTimeoutError, ServiceUnavailableError, ToolExecutionError
from toold.shaping import compile_template
from toold.tools.orchestration.batch_run import BatchPlan, BatchRun
from toold.tools.orchestration.result_shaping import ResultShaping, plan_shaping
from toold.tools.orchestration.step_run import ShapedPart

Run = Callable[..., Any]


async def shape(shaping: ResultShaping, value: Any, name: str) -> ShapedPart:
    if shaping.to_file:
        raise ServiceUnavailableError(f"no room for {name}")
    shaped = shaping.plan.apply(value)
    return ShapedPart(shaped.value, shaped.report.unmatched)


@pytest.fixture
def run(calls: Any, tools: Any, reports: list[tuple[str, float, float]]) -> Run:
    """Return a function that runs a tool over items and returns the report."""

    async def run(tool: str, items: list[Any], **options: Any) -> dict[str, Any]:
        args = options.pop("args", None)
        chosen: dict[str, Any] = {"concurrency": 5, "max_retries": 0, "stop_on_error": False, "detail": True, **options}
        batch = BatchPlan(tool=tools(tool), args=compile_template(args) if args else None, **chosen)
        return await BatchRun(batch, calls.retrying, shape, report=lambda *reported: reports.append(reported)).run(
            items
        )

    return run


@pytest.fixture
def reports() -> list[tuple[str, float, float]]:
    """The progress that the run reported."""
    return []


def odd_fail(arguments: Any) -> Any:
    if arguments["value"] % 2:
        raise ToolExecutionError(f"{arguments['value']} is odd", executed="no")
    return {"n": arguments["value"], "more": "x"}


async def test_each_item_is_the_arguments_of_one_call(run: Run, calls: Any) -> None:
    """The report gives failed items by index and, in detail mode, all results."""
    calls.answers["note"] = odd_fail
    answer = await run("note", [{"value": 0}, {"value": 1}, {"value": 2}])
    assert {name: answer[name] for name in ("total", "succeeded", "failed", "unknown", "skipped")} == {
        "total": 3,
        "succeeded": 2,
        "failed": 1,
        "unknown": 0,
        "skipped": 0,
    }
    assert [(one["index"], one["error"]["message"]) for one in answer["errors"]] == [(1, "1 is odd")]
    assert [(one["index"], one["result"]["n"]) for one in answer["results"]] == [(0, 0), (2, 2)]
    assert sorted(calls.names) == ["0", "1", "2"]


async def test_args_are_built_from_the_item(run: Run, calls: Any) -> None:
    """The template may use ``{{item}}`` and ``{{index}}``."""
    await run("note", ["a", "b"], args={"value": "{{index}}: {{item}}"})
    assert [arguments for _, _, arguments in calls.made] == [{"value": "0: a"}, {"value": "1: b"}]


async def test_an_item_with_invalid_arguments_fails_alone(run: Run, calls: Any) -> None:
    """The other items run."""
    answer = await run("note", [{"value": 1}, "text"])
    assert answer["errors"][0]["error"]["code"] == "VALIDATION_ERROR"
    answer = await run("note", [{"x": 1}, {}], args={"value": "{{item.x}}"})
    assert "`item.x` is missing" in answer["errors"][0]["error"]["message"]
    assert answer["succeeded"] == 1


async def test_a_summary_has_no_results(run: Run) -> None:
    """The report contains only counts and errors."""
    answer = await run("note", [{}], detail=False)
    assert answer.keys() == {"total", "succeeded", "failed", "unknown", "skipped", "duration_ms", "errors"}


async def test_results_are_shaped(run: Run, calls: Any) -> None:
    """``select_fields`` applies to each result."""
    calls.answers["note"] = odd_fail
    answer = await run("note", [{"value": 2}], shape=plan_shaping({"select_fields": ["n"]}))
    assert answer["results"] == [{"index": 0, "result": {"n": 2}}]


async def test_unmatched_fields_are_reported(run: Run, calls: Any) -> None:
    """A field that exists in at least one result is not reported."""
    calls.answers["note"] = lambda arguments: arguments["value"]
    items = [{"value": {"n": 1}}, {"value": {"m": 2}}]
    answer = await run("note", items, shape=plan_shaping({"select_fields": ["n", "m", "nn"]}))
    assert answer["unmatched"] == ["nn"]
    assert "unmatched" not in await run("note", items, shape=plan_shaping({"select_fields": ["n", "m"]}))


async def test_stop_on_error_starts_no_further_items(run: Run, calls: Any) -> None:
    """After a failure the remaining items are skipped."""
    calls.answers["note"] = odd_fail
    answer = await run("note", [{"value": n} for n in (0, 1, 2, 4)], stop_on_error=True, concurrency=1)
    assert (answer["succeeded"], answer["failed"], answer["skipped"]) == (1, 1, 2)


async def test_an_interrupted_write_is_unknown(run: Run, calls: Any) -> None:
    """A write that timed out counts as unknown; a read that timed out counts as failed."""

    def cut(arguments: Any) -> Any:
        raise CallTimeoutError("cut off")

    calls.answers |= {"put": cut, "note": cut}
    assert (await run("put", [{}]))["unknown"] == 1
    assert (await run("note", [{}]))["failed"] == 1


async def test_items_are_retried(run: Run, calls: Any) -> None:
    """An item with a retryable error is retried ``max_retries`` times; the report has the number and the delays."""

    def busy(arguments: Any) -> Any:
        raise ServiceUnavailableError("busy")

    calls.answers["note"] = busy
    answer = await run("note", [{}, {}], max_retries=2, max_delay_s=1.5, concurrency=1)
    assert calls.names == ["0", "0#2", "0#3", "1", "1#2", "1#3"]
    assert answer["retries"] == {"count": 4, "delay_s": 5.0, "max_delay_s": 1.5}
    assert "retries" not in await run("note", [{}])


async def test_remaining_items_are_skipped_at_the_deadline(run: Run, calls: Any) -> None:
    """The report contains the items that finished before the deadline."""

    def slow(arguments: Any) -> dict[str, Any]:
        calls.left_s -= 40.0
        return {}

    calls.answers["note"] = slow
    answer = await run("note", [{}] * 10, concurrency=1)
    assert (answer["succeeded"], answer["skipped"]) == (3, 7)


async def test_progress_counts_the_finished_items(run: Run, reports: list[tuple[str, float, float]]) -> None:
    """The run reports progress after each item."""
    await run("note", [{}, {}], concurrency=1)
    assert reports == [("note: item 0 done", 1, 2), ("note: item 1 done", 2, 2)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 10), st.booleans())
async def test_every_item_is_counted_once(run: Run, calls: Any, values: list[int], at_once: int, stop: bool) -> None:
    """The counts always add up to the total, and errors and results contain each index at most once."""
    calls.answers["note"] = odd_fail
    answer = await run("note", [{"value": n} for n in values], concurrency=at_once, stop_on_error=stop)
    counts = (answer["succeeded"], answer["failed"], answer["unknown"], answer["skipped"])
    assert sum(counts) == answer["total"] == len(values)
    reported = [one["index"] for one in (*answer["errors"], *answer["results"])]
    assert len(reported) == len(set(reported)) == answer["succeeded"] + answer["failed"]
    assert answer["skipped"] == 0 or stop


async def test_results_that_exceed_the_size_limit_are_rejected(run: Run, calls: Any) -> None:
    """Detail mode limits the total size of the results; a summary stores no results."""
    calls.answers["note"] = lambda _: "x" * 20_000_000
    items = [{"value": n} for n in range(5)]
    answer = await run("note", items)
    assert (answer["succeeded"], {one["error"]["code"] for one in answer["errors"]}) == (3, {"RESULT_TOO_LARGE"})
    assert (await run("note", items, detail=False))["succeeded"] == 5


async def test_items_whose_parts_failed_have_failed(run: Run, calls: Any, report: Any) -> None:
    """An inner pipeline or batch with failed or unknown parts is a failed or unknown item, with its answer."""
    outcomes = iter(["succeeded", "failed", "unknown"])
    calls.answers["put"] = lambda _: report(next(outcomes), {"n": 1})
    answer = await run("put", [{}] * 3, concurrency=1, max_retries=3)
    assert [answer[name] for name in ("succeeded", "failed", "unknown")] == [1, 1, 1]
    assert [one["error"]["details"] for one in answer["errors"]] == [{"answer": {"n": 1}}] * 2
    assert calls.names == ["0", "1", "2"]
