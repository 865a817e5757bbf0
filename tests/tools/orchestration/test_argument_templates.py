"""What is known of arguments before anything runs."""

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
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("pqr"), inner, max_size=3)
)


def test_it_has_the_names_that_it_refers_to() -> None:
    """The first names of its paths."""
    assert ArgumentTemplate({"x": ["{{a.b}}", "{{input.n}}"]}, {"input": {"n": 1}}, "args").names == {"a", "input"}


def test_a_template_that_cannot_be_parsed_is_a_problem_at_its_place() -> None:
    """There is nothing to fill in then."""
    templated = ArgumentTemplate({"x": "{{a."}, {}, "args")
    assert templated.template is None
    ((place, told),) = templated.problems
    assert place == "args"
    assert told.startswith("x: ")


def test_what_the_input_lacks_is_a_problem_at_its_place() -> None:
    """Unless a default stands in."""
    value = {"x": ["{{input.m}}", "{{input.m | default(1)}}"]}
    (problem,) = ArgumentTemplate(value, {"input": {}}, "args").problems
    assert problem[0] == "args.x.0"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES)
def test_what_a_run_fills_in_may_be_right(tools: Any, value: Any) -> None:
    """Of a value that a tool takes whatever it is nothing is wrong; of one that must be text, only what is known."""
    assert list(ArgumentTemplate({"value": value}, {"input": {"n": 1}}, "args").mismatches(tools("put"))) == []
    told = dict(ArgumentTemplate({"path": value}, {"input": {"n": 1}}, "args").mismatches(tools("get")))
    assert list(told) == ([] if isinstance(value, str) and value != "{{input.n}}" else ["args.path"])


def test_what_is_known_to_be_too_large_is_a_problem() -> None:
    """A hundred uses of a large input are told of before anything is put together."""
    templated = ArgumentTemplate(["{{input.x}} "] * 100, {"input": {"x": "y" * 1_000_000}}, "args")
    assert [place for place, said in templated.problems if "bytes together" in said] == ["args"]
