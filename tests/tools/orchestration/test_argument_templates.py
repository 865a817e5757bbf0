"""Validation of argument templates before a run."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toold.tools.orchestration.argument_templates import ArgumentTemplate

LEAVES = st.one_of(
    st.none(),
    st.integers(),
    st.sampled_from(["text", "{{a.b}}", "{{input.n}}", "x {{a}}", r"\{{a}}", "{{a | default(1)}}"]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("pqr"), inner, max_size=3),
    max_leaves=8,
)


def test_names_contains_the_referenced_names() -> None:
    """The names are the first parts of the template paths."""
    assert ArgumentTemplate({"x": ["{{a.b}}", "{{input.n}}"]}, {"input": {"n": 1}}, "args").names == {"a", "input"}


def test_an_invalid_template_is_a_problem_at_its_place() -> None:
    """The arguments then have no compiled template."""
    templated = ArgumentTemplate({"x": "{{a."}, {}, "args")
    assert templated.template is None
    ((place, reported),) = templated.problems
    assert place == "args"
    assert reported.startswith("x: ")


def test_a_missing_input_is_a_problem_at_its_place() -> None:
    """A template with a default causes no problem."""
    value = {"x": ["{{input.m}}", "{{input.m | default(1)}}"]}
    (problem,) = ArgumentTemplate(value, {"input": {}}, "args").problems
    assert problem[0] == "args.x.0"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES)
def test_values_that_are_known_only_in_a_run_are_accepted(tools: Any, value: Any) -> None:
    """A parameter of any type accepts every template; a string parameter rejects only values that are known before
    the run."""
    assert list(ArgumentTemplate({"value": value}, {"input": {"n": 1}}, "args").mismatches(tools("put"))) == []
    reported = dict(ArgumentTemplate({"path": value}, {"input": {"n": 1}}, "args").mismatches(tools("get")))
    assert list(reported) == ([] if isinstance(value, str) and value != "{{input.n}}" else ["args.path"])


def test_a_value_that_is_known_to_be_too_large_is_a_problem() -> None:
    """A hundred uses of a large input are rejected before the value is built."""
    templated = ArgumentTemplate(["{{input.x}} "] * 100, {"input": {"x": "y" * 1_000_000}}, "args")
    assert [place for place, said in templated.problems if "bytes together" in said] == ["args"]
