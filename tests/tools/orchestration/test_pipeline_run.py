"""Pipeline runs without a daemon: the order of steps, failures and the report."""

import asyncio
from typing import Any
from unittest.mock import ANY

import pytest
from msgspec.structs import replace
from tests.tools.orchestration.pipeline_steps import Run, step
from toold.protocol.error_codes import (
    InvalidArgumentsError,
    OutcomeUnknownError,
)
from toold.protocol.tool_call import Metadata, Timings, ToolResult
from toold.tools.orchestration.pipeline_run import MAX_PARALLEL_STEPS
from toold.tools.orchestration.run_limits import ResultBudget


async def test_results_are_passed_to_the_next_step(run: Run, calls: Any) -> None:
    """Results keep their type. The report contains the result of each step and that of the last one."""
    calls.answers["note"] = lambda arguments: {"got": arguments["value"]}
    answer = await run(
        step("a", [1, {"x": 2}]),
        step("b", "{{a.got[1]}}"),
        step("c", "{{input.name}}: {{b.got.x}}"),
        input={"name": "n"},
    )
    assert answer["result"] == {"got": "n: 2"}
    assert (answer["success"], answer["steps_completed"], answer["total_steps"]) == (True, 3, 3)
    assert answer["step_results"]["b"]["result"] == {"got": {"x": 2}}
    assert answer["step_results"]["b"]["attempts"] == 1
    assert answer["step_results"]["b"]["duration_ms"] >= 0
    assert "stop_reason" not in answer


async def test_a_text_is_a_result(run: Run, calls: Any) -> None:
    """If a tool returns no data, later steps refer to its text."""
    calls.answers["note"] = lambda arguments: f"said {arguments['value']}"
    assert (await run(step("a", "x"), step("b", "{{a}}!")))["result"] == "said said x!"


async def test_braces_in_a_result_are_not_templates(run: Run, calls: Any) -> None:
    """Templates in the result of a step are not expanded."""
    calls.answers["note"] = lambda arguments: {"is": arguments["value"]}
    answer = await run(step("a", r"\{{input.secret}}"), step("b", "{{a.is}}"), input={"secret": "s"})
    assert answer["result"] == {"is": "{{input.secret}}"}


async def test_templates_can_select_fields_of_json_text(run: Run, calls: Any) -> None:
    """This works in arguments, conditions, lists and the result; a reference to the whole text returns it unchanged."""
    calls.answers["get"] = lambda arguments: f'{{"path": "{arguments["path"]}", "rows": ["{{{{input.x}}}}", 2]}}'
    calls.answers["note"] = lambda arguments: {"is": arguments["value"]}
    answer = await run(
        {"id": "a", "tool_name": "get", "args": {"path": "p"}},
        {"id": "b", "tool_name": "get", "args": {"path": "{{item}}"}, "for_each": "{{a.rows}}"},
        step("c", ["{{a.path}}", "{{a}}"], when="a.path = p AND b[1].path = '2' AND a IS_NOT_NULL"),
        step("d", "{{item.rows[1]}}", for_each="{{b}}"),
        step("e", when="a.path = q"),
        step("f", when="a CONTAINS rows"),
        step("g", "{{a.nothing}}", on_error="fallback", fallback="{{b[*].path}}"),
        input={"x": 1},
        **{"return": ["{{c.is}}", "{{d[*].is}}", "{{g}}"]},
    )
    words = '{"path": "p", "rows": ["{{input.x}}", 2]}'
    assert answer["result"] == [["p", words], [2, 2], ["{{input.x}}", "2"]]
    assert answer["step_results"]["a"]["result"] == words
    assert [answer["step_results"][name]["state"] for name in "efg"] == ["skipped", "succeeded", "used_fallback"]
    assert "has the fields path, rows" in answer["step_results"]["g"]["error"]["message"]


async def test_parsed_json_text_counts_towards_the_limit(run: Run, calls: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only text whose fields are referenced is parsed; if it exceeds the limit, its step fails."""
    monkeypatch.setattr("toold.tools.orchestration.step_run.ResultBudget", lambda: ResultBudget(max_bytes=90))
    calls.answers["get"] = lambda _: '{"a": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}'
    get = {"id": "a", "tool_name": "get", "args": {"path": "p"}}
    assert (await run(get, **{"return": 1}))["success"] is True
    answer = await run(get, step("b", "{{a.a}}"), **{"return": 1})
    assert answer["step_results"]["a"]["error"]["code"] == "RESULT_TOO_LARGE"


async def test_return_defines_the_result(run: Run, calls: Any) -> None:
    """``return`` may be any template; a missing value fails the run, and the report still contains the steps."""
    calls.answers["note"] = lambda arguments: {"n": arguments["value"]}
    assert (await run(step("a", 1), **{"return": {"n": "{{a.n}}", "k": ["{{input.k}}"]}}, input={"k": 2}))[
        "result"
    ] == {"n": 1, "k": [2]}
    answer = await run(step("a", 1), **{"return": "{{a.m}}"})
    assert answer["success"] is False
    assert "`a.m` is missing" in answer["stop_reason"]
    assert answer["step_results"]["a"]["success"] is True


async def test_independent_steps_run_concurrently(run: Run, calls: Any) -> None:
    """Concurrency is limited, and dependent steps run afterwards."""
    many = [step(f"s{number}", number) for number in range(12)]
    await run(step("join", ["{{s0}}", "{{s11}}"]), *many)
    assert calls.most_at_once == MAX_PARALLEL_STEPS
    assert calls.names[-1] == "join"


async def test_when_decides_whether_a_step_runs(run: Run, calls: Any) -> None:
    """``when`` can use results and input; a skipped step has no result, so a default applies."""
    calls.answers["note"] = lambda arguments: {"n": arguments["value"]}
    answer = await run(
        step("a", 3),
        step("no", "x", when="a.n > 5"),
        step("yes", "{{no.n | default('none')}}", when="a.n > 2 AND input.least = 1 AND no IS_NULL"),
        input={"least": 1},
    )
    assert answer["step_results"]["no"] == {"success": True, "state": "skipped", "duration_ms": ANY, "attempts": 0}
    assert answer["result"] == {"n": "none"}
    assert answer["success"] is True
    assert answer["steps_completed"] == 2


async def test_a_reference_to_a_skipped_step_fails(run: Run) -> None:
    """Without a default the error names the step that produced no result."""
    answer = await run(step("a", when="input.x = 1"), step("b", "{{a.n}}"))
    assert answer["success"] is False
    assert answer["step_results"]["b"]["error"]["code"] == "VALIDATION_ERROR"
    assert "'a' produced no result" in answer["step_results"]["b"]["error"]["message"]


async def test_options_shape_the_result_of_a_step(run: Run, calls: Any) -> None:
    """Later steps get the shaped value. If shaping fails, the step fails with an error that says that the tool ran."""
    calls.answers["note"] = lambda _: {"rows": [{"n": n, "x": "x"} for n in range(5)]}
    answer = await run(step("a", options={"at": "rows", "filter": "n > 2", "select_fields": ["n"]}), step("b", "{{a}}"))
    assert calls.made[-1][2] == {"value": [{"n": 3}, {"n": 4}]}
    answer = await run(step("a", options={"at": "row", "limit": 1}))
    assert answer["step_results"]["a"]["error"]["executed"] == "yes"
    assert answer["step_results"]["a"]["error"]["message"].endswith("did you mean 'rows'?")
    answer = await run(step("a", options={"at": "rows", "return_mode": "file"}))
    assert answer["step_results"]["a"]["error"]["message"] == "no room for a"
    assert answer["step_results"]["a"]["error"]["executed"] == "yes"


async def test_unmatched_fields_in_options_are_reported(run: Run, calls: Any) -> None:
    """For a ``for_each`` step a field is reported only if no element's result has it."""
    calls.answers["note"] = lambda arguments: [{arguments["value"]: 1}]
    one = step("a", "n", options={"filter": "vots > 1", "select_fields": ["n"]})
    each = step("b", "{{item}}", for_each=["n", "m"], options={"select_fields": ["n", "m", "x.y"]})
    reported = (await run(one, each, step("c", "n", options={"select_fields": ["n"]})))["step_results"]
    assert (reported["a"]["unmatched"], reported["b"]["unmatched"]) == (["vots"], ["x.y"])
    assert "unmatched" not in reported["c"]
    assert reported["a"]["shaping"] == "Shaped the list: 1 row, 0 match the filter. No value has vots."
    assert reported["c"]["shaping"] == "Shaped the list: 1 row."
    assert "shaping" not in reported["b"]


async def test_return_may_select_fields_of_steps(run: Run, calls: Any) -> None:
    """An object of lists of paths selects them from each step's result; what a result lacks is reported, and a step
    without a result is omitted.
    """
    calls.answers["note"] = lambda arguments: arguments["value"]
    calls.answers["get"] = lambda _: '{"id": 5, "x": 6}'
    answer = await run(
        step("rows", [{"id": 1, "x": 2}, {"id": 3}]),
        step("one", {"contact": {"id": 4, "tags": ["a"]}}),
        step("page", {"items": [{"id": 1, "x": 2}], "total": 1}),
        {"id": "text", "tool_name": "get", "args": {"path": "p"}},
        step("none", when="input.no = true"),
        **{
            "return": {
                "rows": ["[*].id", "nam"],
                "one": ["contact.tags"],
                "page": ["items[*].id"],
                "text": ["id"],
                "none": ["id"],
            }
        },
    )
    assert answer["result"] == {
        "rows": [{"id": 1}, {"id": 3}],
        "one": {"contact": {"tags": ["a"]}},
        "page": {"items": [{"id": 1}]},
        "text": {"id": 5},
    }
    assert answer["unmatched"] == {"rows": ["nam"]}
    assert answer["success"] is True
    whole = await run(step("rows", [{"id": 1}]), **{"return": {"rows": []}})
    assert (whole["result"], "unmatched" in whole) == ({"rows": [{"id": 1}]}, False)


async def test_missing_fields_to_return_do_not_fail_the_run(run: Run, calls: Any) -> None:
    """Its steps have run: a failure would make callers repeat them."""
    calls.answers["note"] = lambda arguments: arguments["value"]
    steps = (
        step("one", {"contact": {"id": 4, "tags": ["a"]}}),
        step("two", {"a": [1], "b": [2]}),
        step("three", {"c": 1}),
    )
    answer = await run(*steps, **{"return": {"one": ["id"], "two": ["id", "x"], "three": ["id"]}})
    assert (answer["success"], answer["result"]) == (True, {"one": {}, "two": {}, "three": {}})
    assert answer["unmatched"] == {"one": ["id"], "two": ["id", "x"], "three": ["id"]}


async def test_fields_of_large_results_are_selected_in_a_thread(run: Run, calls: Any, monkeypatch: Any) -> None:
    """Selecting them would block the event loop."""
    threads: list[Any] = []
    to_thread = asyncio.to_thread

    async def noted(function: Any, *arguments: Any) -> Any:
        threads.append(function)
        return await to_thread(function, *arguments)

    monkeypatch.setattr(asyncio, "to_thread", noted)
    rows = [{"id": number} for number in range(5_000)]
    calls.answers["note"] = lambda _: rows
    answer = await run(step("a"), **{"return": {"a": ["id"]}})
    assert answer["result"] == {"a": rows}
    assert len(threads) == 1


async def test_no_step_starts_after_the_deadline(run: Run, calls: Any) -> None:
    """The report contains the finished steps and the reason why the others did not run."""

    def slow(arguments: Any) -> dict[str, Any]:
        calls.left_s = 0.0
        return {}

    calls.answers["note"] = slow
    answer = await run(step("a"), step("b", "{{a}}"))
    assert answer["stop_reason"] == "the time ran out"
    assert [one["state"] for one in answer["step_results"].values()] == ["succeeded", "not_run"]
    calls.left_s = 100.0
    answer = await run(step("a", "{{item}}", for_each=[1, 2, 3], concurrency=1))
    assert "before 2 of 3 elements" in answer["step_results"]["a"]["error"]["message"]


async def test_a_delay_is_observed(run: Run, calls: Any) -> None:
    """The run waits before it starts the step."""
    await run(step("a", delay_ms=1500))
    assert calls.slept == [1.5]


async def test_a_delay_beyond_the_deadline_fails_the_step(run: Run, calls: Any) -> None:
    """The step is not called, and its error says that nothing was executed."""
    calls.left_s = 2.0
    answer = await run(step("a", delay_ms=5000))
    assert calls.slept == [2.0]
    assert calls.made == []
    assert answer["step_results"]["a"]["error"]["executed"] == "no"


async def test_progress_names_the_step(run: Run, reports: list[str]) -> None:
    """The run reports each start and end of a step with the number of finished steps."""
    await run(step("a"), step("b", "{{a}}"))
    assert reports == ["a: note (0/2)", "a: succeeded (1/2)", "b: note (1/2)", "b: succeeded (2/2)"]


async def test_a_replayed_step_is_marked(run: Run, calls: Any) -> None:
    """A finished step is not repeated. A write of unknown outcome stops the run."""
    await run(step("a", 1, "put"))
    from_before = await calls.call("put", {}, name="x")
    calls.kept["a"] = replace(from_before, metadata=replace(from_before.metadata, replayed=True))
    answer = await run(step("a", 1, "put"), step("b", "{{a}}"))
    assert answer["step_results"]["a"]["replayed"] is True
    cut = OutcomeUnknownError("cut off").to_tool_error()
    calls.kept["a"] = ToolResult(Metadata(1.0, Timings(), replayed=True), error=cut)
    answer = await run(step("a", 1, "put"), step("b", "{{a}}"))
    assert answer["step_results"]["a"]["state"] == "unknown"
    assert answer["stop_reason"].startswith("the outcome of step 'a' is unknown: cut off It was not repeated")


async def test_a_template_that_is_not_an_object_is_rejected_as_arguments(run: Run) -> None:
    """The step fails before its tool is called."""
    answer = await run(step("a", 1), {"id": "b", "tool_name": "note", "args": "{{input.x}}"}, input={"x": {"value": 1}})
    assert answer["success"] is True
    answer = await run({"id": "b", "tool_name": "note", "args": "{{item}}", "for_each": [1]})
    assert answer["step_results"]["b"]["error"]["code"] == InvalidArgumentsError.code


async def test_a_cancelled_run_cancels_its_steps(run: Run, calls: Any) -> None:
    """No call is running after the cancellation."""
    ended = asyncio.Event()

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    calls.answers["note"] = lambda _: hang()
    task = asyncio.create_task(run(step("a"), step("b")))
    while calls.at_once < 2:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()
    assert calls.at_once == 0


async def test_values_that_grow_with_each_step_are_limited(run: Run) -> None:
    """The step whose arguments become too large fails, and the report stays small."""
    first = {"id": "s0", "tool_name": "note", "args": {"value": ["x" * 10]}}
    steps = [{"id": f"s{n}", "tool_name": "note", "args": {"value": [f"{{{{s{n - 1}}}}}"] * 10}} for n in range(1, 20)]
    answer = await run(first, *steps)
    assert answer["success"] is False
    assert "bytes together" in answer["stop_reason"]
    assert answer["step_results"]["s19"]["state"] == "not_run"


async def test_results_that_exceed_the_size_limit_are_replaced(run: Run, calls: Any) -> None:
    """The total size of the elements' results is limited.

    An excess result is replaced by the fallback, and its error says that the tool ran.
    """
    calls.answers["note"] = lambda _: "x" * 20_000_000
    step = {"id": "all", "tool_name": "note", "args": {"value": "{{item}}"}, "for_each": [0, 1, 2, 3, 4]}
    answer = await run(step | {"on_error": "fallback", "fallback": "too large"})
    shown = answer["step_results"]["all"]
    assert [len(value) for value in shown["result"]] == [20_000_000] * 3 + [9] * 2
    assert {(one["error"]["code"], one["error"]["executed"]) for one in shown["errors"]} == {
        ("RESULT_TOO_LARGE", "yes")
    }
