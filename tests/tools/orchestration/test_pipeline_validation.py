"""Pipeline planning: the dependency graph and the validation of steps."""

from itertools import pairwise
from typing import Any
from unittest.mock import ANY

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from toold.protocol.error_codes import InvalidArgumentsError, PermissionDeniedError
from toold.tools.orchestration.execute_pipeline import PipelineArguments
from toold.tools.orchestration.pipeline_plan import PipelinePlan
from toold.tools.orchestration.pipeline_validation import check_pipeline, plan_pipeline


def planned(tools: Any, *steps: dict[str, Any], **more: Any) -> PipelinePlan:
    arguments = PipelineArguments.model_validate({"steps": list(steps), **more})
    return plan_pipeline(arguments, tools, {"input": arguments.input})


def problems(tools: Any, *steps: dict[str, Any], **more: Any) -> dict[str, str]:
    """The problems by place."""
    with pytest.raises(InvalidArgumentsError) as raised:
        planned(tools, *steps, **more)
    found: dict[str, str] = (raised.value.details or {})["fields"]
    assert all(f"{place}: {wrong}" in raised.value.message for place, wrong in found.items())
    return found


def note(id: str, value: Any = None, **more: Any) -> dict[str, Any]:  # noqa: A002 - the name of the field
    return {"id": id, "tool_name": "note", "args": {"value": value}, **more}


def test_steps_wait_for_the_steps_that_they_reference(tools: Any) -> None:
    """References count in arguments, ``when``, ``for_each`` and ``fallback``."""
    plan = planned(
        tools,
        note("a"),
        note("b", "{{a.x}} and {{input.y | default(1)}}"),
        note("c", when="b.ok = true AND a IS_NOT_NULL"),
        note("d", "{{item}}{{index}}", for_each="{{c.rows}}"),
        note("e", on_error="fallback", fallback={"was": ["{{d[0]}}"]}),
    )
    assert [step.after for step in plan.steps] == [(), ("a",), ("b", "a"), ("c",), ("d",)]
    assert plan.rounds == [["a"], ["b"], ["c"], ["d"], ["e"]]


def test_independent_steps_are_in_the_same_round(tools: Any) -> None:
    """A round contains the steps that depend only on earlier rounds, independent of the order in the request."""
    plan = planned(tools, note("join", ["{{x}}", "{{y}}"]), note("x"), note("y", "{{z}}"), note("z"))
    assert plan.rounds == [["x", "z"], ["y"], ["join"]]


def test_the_plan_can_be_shown(tools: Any) -> None:
    """A dry run shows the order, the dependencies and the annotations of each tool."""
    shown = planned(tools, note("a"), {"id": "b", "tool_name": "put", "args": {"value": "{{a}}"}}).shown()
    assert shown["dry_run"] is True
    assert shown["order"] == [["a"], ["b"]]
    assert shown["steps"]["b"]["after"] == ["a"]
    assert shown["steps"]["b"]["annotations"]["readOnlyHint"] is False
    assert shown["steps"]["a"]["tool_name"] == "note"


def test_all_problems_are_reported_at_once(tools: Any) -> None:
    """One error names every place."""
    found = problems(
        tools,
        {"id": "a", "tool_name": "got", "args": {}},
        {"id": "b", "tool_name": "get", "args": {"path": "{{a.", "limit": 1}},
        {"id": "c", "tool_name": "get", "args": {"limt": 1}},
        note("c", "{{nobody.x}}"),
        note("input"),
        note("d", when="a == 1"),
        note("e", options={"limit": "x", "filtre": ""}),
        note("f", "{{g}}"),
        note("g", "{{f}}"),
        note("h", "{{item}}"),
        note("i", for_each="all"),
        note("j", fallback=1),
        note("k", "{{input.missing}}"),
        **{"return": "{{cc}}"},
    )
    assert "There is no tool 'got'; did you mean 'get'?" in found["steps.0.tool_name"]
    assert "position" in found["steps.1.args"]
    assert found["steps.2.args.path"] == "is missing; it should be a string"
    assert "did you mean 'limit'?" in found["steps.2.args.limt"]
    assert "steps.2" in found["steps.3.id"]
    assert "no step 'nobody'" in found["steps.3.args"]
    assert "reserved name" in found["steps.4.id"]
    assert "==" in found["steps.5.when"]
    assert "number of rows" in found["steps.6.options.limit"]
    assert "did you mean 'filter'?" in found["steps.6.options.filtre"]
    assert "f → g → f" in found["steps.7"]
    assert "for_each" in found["steps.9.args"]
    assert "a list" in found["steps.10.for_each"]
    assert "on_error" in found["steps.11.fallback"]
    assert "`input.missing` is missing" in found["steps.12.args.value"]
    assert "did you mean 'c'?" in found["return"]
    assert len(found) == 16


def test_a_withheld_tool_does_not_hide_other_problems(tools: Any) -> None:
    """The error reports the withheld tool together with the other problems."""

    def withholding(name: str) -> Any:
        if name == "put":
            raise PermissionDeniedError("The operator has not approved 'put'.")
        return tools(name)

    put = {"id": "a", "tool_name": "put", "args": {}}
    assert problems(withholding, put, note("b", when="a == 1")) == {
        "steps.0.tool_name": "The operator has not approved 'put'",
        "steps.1.when": ANY,
    }


def test_a_step_that_references_itself_is_a_cycle(tools: Any) -> None:
    """Only the step in the cycle is reported, not the steps that depend on it."""
    assert problems(tools, note("b", "{{a}}"), note("a", "{{a.x}}")) == {
        "steps.1": "these steps wait for each other: a → a"
    }


def test_each_cycle_is_reported_once(tools: Any) -> None:
    """Two cycles are two problems."""
    steps = [note("a", "{{b}}"), note("b", "{{a}}"), note("c", "{{d}}"), note("d", "{{c}}{{a}}")]
    assert len(problems(tools, *steps)) == 2


@pytest.mark.parametrize(
    ("args", "wrong"),
    [
        ({"path": "{{a}}", "limit": "{{a.n}}"}, {}),
        ({"path": "{{input.path}}"}, {}),
        ("{{a}}", {}),
        ({"path": "{{input.n}}"}, {"steps.1.args.path": "should be a string, not 3"}),
        ({"path": 1, "limit": "{{a}}"}, {"steps.1.args.path": "should be a string, not 1"}),
        ({"limit": "{{a}}"}, {"steps.1.args.path": "is missing; it should be a string"}),
        ({"path": "x", "limt": "{{a}}"}, {"steps.1.args.limt": "is not an argument; did you mean 'limit'?"}),
        ("{{input.whole}}", {}),
        (
            "path",
            {"steps.1.args": "should be an object with the tool's arguments, or one template of such an object"},
        ),
    ],
)
def test_arguments_are_validated_as_far_as_they_are_known(tools: Any, args: Any, wrong: dict[str, str]) -> None:
    """Constant values and input values are checked against the schema; results of steps are not known yet."""
    steps = [note("a"), {"id": "b", "tool_name": "get", "args": args}]
    given = {"path": "x", "n": 3, "whole": {"path": "y"}}
    if wrong:
        assert problems(tools, *steps, input=given) == wrong
    else:
        planned(tools, *steps, input=given)


def test_when_cannot_use_item(tools: Any) -> None:
    """``when`` applies to the whole step; the error names ``filter``, which applies to each element."""
    found = problems(tools, note("a", for_each=[1], when="item > 1"))
    assert "use filter to select elements" in found["steps.0.when"]


def test_options_of_elements_require_for_each(tools: Any) -> None:
    """``concurrency`` and ``filter`` without ``for_each`` would be ignored; the error says what to use instead."""
    found = problems(tools, note("a", concurrency=2, filter="x = 1"), note("b", for_each=[1], filter="x == 1"))
    assert found["steps.0.concurrency"] == "is for the elements of for_each; steps run in parallel without it"
    assert "options.filter filters the result, and when skips the step" in found["steps.0.filter"]
    assert "use =" in found["steps.1.filter"]


def test_an_element_filter_may_use_steps(tools: Any) -> None:
    """The step waits for the steps that its filter's templates use."""
    plan = planned(tools, note("a"), note("b", "{{item}}", for_each=[1], filter="{{a.send}}"))
    assert plan.rounds == [["a"], ["b"]]
    assert "no step 'c'" in problems(tools, note("b", for_each=[1], filter="{{c.send}}"))["steps.0.filter"]


@pytest.mark.parametrize(
    ("returned", "place", "reported"),
    [
        ({"a": ["x"], "c": ["y"]}, "return.c", "there is no step 'c'; the steps are a, list-2"),
        ({"lst-2": ["x"]}, "return.lst-2", "did you mean 'list-2'?"),
        ({"a": ["x["]}, "return.a.select_fields.0", "expected an index"),
        ("a", "return", "'a' would be returned literally; write '{{a}}'"),
        ("list-2.items[0]", "return", "write '{{list-2.items[0]}}'"),
        ({"first": ["a.x", 1]}, "return.first.0", "write '{{a.x}}'"),
    ],
)
def test_a_return_that_refers_to_no_step_is_reported(tools: Any, returned: Any, place: str, reported: str) -> None:
    """Unknown steps, invalid paths, and references without braces, which would be returned as they are written."""
    found = problems(tools, note("a"), note("list-2"), **{"return": returned})
    assert reported in found[place]
    assert len(found) == 1


@pytest.mark.parametrize("returned", ["done", {"source": "a"}, 1, ["b.x", {}], {"a": {"b": 1}}, ["{{a}}", "a.x"]])
def test_a_constant_return_is_allowed(tools: Any, returned: Any) -> None:
    """A value that does not look like a reference is the result as it is."""
    planned(tools, note("a"), **{"return": returned})


@pytest.mark.parametrize("condition", ["n > {{input.least}}", "name = '{{a.name}}'", "{{a.n}} > 1"])
def test_a_template_in_a_filter_is_rejected(tools: Any, condition: str) -> None:
    """A filter would treat the template as literal text."""
    found = problems(tools, note("a"), note("b", when=condition), note("c", options={"filter": condition}))
    assert found["steps.1.when"].startswith("templates are not resolved here; a condition names fields")
    assert found["steps.2.options.filter"].startswith("templates are not resolved here; call execute_tool")


@pytest.mark.parametrize(
    ("when", "reported"),
    [
        ("a.n > input.least", True),
        ("input.x = 1 OR NOT a.n IN (1, a[0].n)", True),
        ("a.name = 'input.least'", False),
        ('a.name = "a.txt"', False),
        ("a.name = report.txt AND a.kind = a", False),
        ("a.n > 5", False),
    ],
)
def test_a_field_used_as_a_value_is_rejected(tools: Any, when: str, reported: bool) -> None:
    """An unquoted step or input path on the right-hand side is an error; a quoted text or any other word is a value."""
    steps = note("a"), note("b", when=when)
    if not reported:
        assert planned(tools, *steps).rounds == [["a"], ["b"]]
        return
    assert "is compared with a value, not with another field" in problems(tools, *steps)["steps.1.when"]


def test_steps_can_be_validated_without_their_tools() -> None:
    """Only problems that do not depend on tools or input are reported."""
    good = {"steps": [{"id": "a", "tool_name": "anything", "args": {"x": "{{input.y}}"}}]}
    check_pipeline(PipelineArguments.model_validate(good))
    with pytest.raises(InvalidArgumentsError, match=r"steps\.0: .*a → a"):
        check_pipeline(PipelineArguments.model_validate({"steps": [{"id": "a", "tool_name": "x", "args": "{{a}}"}]}))


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": []},
        {"steps": [note(f"s{number}") for number in range(21)]},
        {"steps": [note("a.b")]},
        {"steps": [note("a#2")]},
        {"steps": [note("a", retry={"max": 4})]},
        {"steps": [note("a", concurrency=11)]},
        {"steps": [note("a", delay_ms=60_001)]},
        {"steps": [note("a", on_error="ignore")]},
        {"steps": [note("a")], "timeout_s": 86_401},
    ],
)
def test_limits_are_enforced(wrong: dict[str, Any]) -> None:
    """The limits cover steps (1–20), step ids, retries (3), concurrency (10), delay (one minute) and timeout (one
    day)."""
    with pytest.raises(ValidationError):
        PipelineArguments.model_validate(wrong)


graphs = st.integers(1, 12).flatmap(
    lambda size: st.lists(st.sets(st.integers(0, size - 1), max_size=3).map(sorted), min_size=size, max_size=size)
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graph=graphs)
def test_a_graph_has_an_order_or_a_reported_cycle(tools: Any, graph: list[list[int]]) -> None:
    """In an order each step follows all its dependencies; a reported cycle exists in the graph."""
    steps = [note(f"s{number}", [f"{{{{s{other}}}}}" for other in others]) for number, others in enumerate(graph)]
    refers = {f"s{number}": {f"s{other}" for other in others} for number, others in enumerate(graph)}
    try:
        order = planned(tools, *steps).rounds
    except InvalidArgumentsError as error:
        for reported in (error.details or {})["fields"].values():
            circle = reported.partition(": ")[2].split(" → ")
            assert circle[0] == circle[-1]
            assert all(after in refers[step] for step, after in pairwise(circle))
        return
    place = {step: number for number, steps_of_round in enumerate(order) for step in steps_of_round}
    assert place.keys() == refers.keys()
    assert all(place[after] < place[step] for step, others in refers.items() for after in others)
