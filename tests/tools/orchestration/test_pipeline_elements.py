"""Steps of a pipeline that run once for each element of a list."""

from typing import Any
from unittest.mock import ANY

import pytest
from tests.tools.orchestration.pipeline_steps import Run, step
from toold.protocol.error_codes import (
    ToolExecutionError,
)

ITEMS: list[dict[str, Any]] = [{"n": 1, "to": "a"}, {"n": 0, "to": []}, {"to": ["b"]}, {"n": 3, "to": ""}]


async def test_for_each_runs_a_step_per_element(run: Run, calls: Any) -> None:
    """Results keep the order of the list, concurrency is limited, and each element is a call with a unique name."""
    calls.answers["note"] = lambda arguments: {"got": arguments["value"]}
    answer = await run(
        step("a", ["x", "y", "z"]),
        step("b", "{{index}}:{{item}}", for_each="{{a.got}}", concurrency=2),
        step("c", "{{b[*].got}}"),
    )
    assert answer["result"] == {"got": ["0:x", "1:y", "2:z"]}
    assert calls.names[1:4] == ["b.0", "b.1", "b.2"]
    assert calls.most_at_once == 2
    assert answer["step_results"]["b"]["attempts"] == 3


@pytest.mark.parametrize(
    ("condition", "chosen"),
    [
        ("n > 0", ["a", ""]),
        ("to IS_NOT_NULL AND NOT n = 3", ["a", [], ["b"]]),
        ("{{item.n}}", ["a", ""]),
        ("{{item.to}}", ["a", ["b"]]),
        ("{{item.to.length}}", [["b"]]),
        ("{{item.nothing}}", []),
        ("{{input.on}}", ["a", [], ["b"], ""]),
        ("{{input.off}}", []),
    ],
)
async def test_a_step_runs_for_the_selected_elements(run: Run, calls: Any, condition: str, chosen: list[Any]) -> None:
    """By a filter, or by templates whose value is not null, false, 0 or empty; the others have no result and count as
    skipped.
    """
    calls.answers["note"] = lambda arguments: arguments["value"]
    answer = await run(
        step("a", ["{{item.to}}", "{{index}}"], for_each=ITEMS, filter=condition), input={"on": True, "off": 0}
    )
    assert answer["result"] == [[to, [item["to"] for item in ITEMS].index(to)] for to in chosen]
    report = answer["step_results"]["a"]
    assert report.get("skipped", 0) == len(ITEMS) - len(chosen)
    assert report["attempts"] == len(chosen)


async def test_a_filter_that_cannot_be_resolved_fails_the_element(run: Run, calls: Any) -> None:
    """The error names the option."""
    calls.answers["note"] = lambda _: "x" * (7 * 1024**2)
    answer = await run(step("a"), step("b", for_each=[1], filter="{{a}}" * 3))
    assert "filter: the values that templates insert exceed" in answer["step_results"]["b"]["error"]["message"]


async def test_a_json_text_is_filtered_as_its_value(run: Run, calls: Any) -> None:
    """Elements that are JSON texts have fields, as in templates."""
    calls.answers["get"] = lambda arguments: '{"n": 1}' if arguments["path"] == "p" else '{"n": 2}'
    answer = await run(
        {"id": "a", "tool_name": "get", "args": {"path": "{{item}}"}, "for_each": ["p", "q"]},
        step("b", "{{item.n}}", for_each="{{a}}", filter="n = 2"),
    )
    assert [made["value"] for name, _, made in calls.made if name.startswith("b")] == [2]
    assert answer["step_results"]["b"]["skipped"] == 1


@pytest.mark.parametrize(("value", "reported"), [("text", "is not a list"), (list(range(101)), "has 101 elements")])
async def test_for_each_accepts_a_list_of_at_most_100_elements(run: Run, value: Any, reported: str) -> None:
    """Any other value fails the step before a call is made."""
    answer = await run(step("b", "{{item}}", for_each="{{input.x}}"), input={"x": value})
    assert reported in answer["step_results"]["b"]["error"]["message"]


def odd_fail(arguments: Any) -> Any:
    if arguments["value"] % 2:
        raise ToolExecutionError(f"{arguments['value']} is odd", executed="no")
    return {"n": arguments["value"]}


async def test_a_failed_element_stops_its_step(run: Run, calls: Any) -> None:
    """No further element starts, and the error names the failed element."""
    calls.answers["put"] = odd_fail
    answer = await run(step("a", "{{item}}", "put", for_each=[0, 1, 2, 3], concurrency=1))
    assert calls.names == ["a.0", "a.1"]
    a = answer["step_results"]["a"]
    assert a["error"]["message"] == "element 1: 1 is odd"
    assert a["errors"] == [{"index": 1, "error": ANY}]
    assert "result" not in a
    assert answer["success"] is False


async def test_failed_elements_are_null_with_on_error_continue(run: Run, calls: Any) -> None:
    """Every element runs, and the results keep their positions."""
    calls.answers["put"] = odd_fail
    answer = await run(step("a", "{{item}}", "put", for_each=[0, 1, 2, 3], on_error="continue", concurrency=1))
    assert answer["result"] == [{"n": 0}, None, {"n": 2}, None]
    assert [error["index"] for error in answer["step_results"]["a"]["errors"]] == [1, 3]
    assert answer["success"] is True


async def test_a_fallback_applies_to_each_element(run: Run, calls: Any) -> None:
    """The fallback can use ``{{item}}``."""
    calls.answers["put"] = odd_fail
    answer = await run(step("a", "{{item}}", "put", for_each=[0, 1], on_error="fallback", fallback={"n": "{{item}}"}))
    assert answer["result"] == [{"n": 0}, {"n": 1}]
    assert answer["step_results"]["a"]["state"] == "used_fallback"
