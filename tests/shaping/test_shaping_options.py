"""Conversion of options to a plan, and the errors of invalid options."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.error_codes import InvalidArgumentsError
from toold.shaping.aggregation import Aggregation
from toold.shaping.filter_parser import parse_filter
from toold.shaping.shaping_options import MAX_PATHS, plan
from toold.shaping.shaping_plan import ShapingPlan
from toold.shaping.sort_order import SortKey
from toold.shaping.value_paths import ValuePath


def path(*steps: str) -> ValuePath:
    return ValuePath(steps)


def wrong(options: Any, name: str = "options") -> dict[str, str]:
    with pytest.raises(InvalidArgumentsError) as raised:
        plan(options, name)
    assert raised.value.details is not None
    fields: dict[str, str] = raised.value.details["fields"]
    assert all(f"{field}: {reported}" in raised.value.message for field, reported in fields.items())
    return fields


def test_all_options_become_a_plan() -> None:
    """Each option is parsed before anything runs."""
    found = plan(
        {
            "at": "data.items",
            "filter": "a = 1",
            "sort": ["-b.c", "d"],
            "limit": 5,
            "select_fields": ["a", "b.c", "a"],
            "aggregate": {"group_by": ["a"], "count": True, "sum": ["b.c"]},
            "return_mode": "file",
        }
    )
    assert found == ShapingPlan(
        at=path("data", "items"),
        filter=parse_filter("a = 1"),
        sort=(SortKey(path("b", "c"), descending=True), SortKey(path("d"))),
        limit=5,
        select_fields=(path("a"), path("b", "c")),
        aggregate=Aggregation((path("a"),), count=True, figures={"sum": (path("b", "c"),)}),
        return_mode="file",
    )


@pytest.mark.parametrize("options", [None, {}, {"filter": None, "limit": None, "sort": []}])
def test_missing_options_are_an_empty_plan(options: Any) -> None:
    """Null and an empty list of sort fields count as missing."""
    assert plan(options) == ShapingPlan()


@pytest.mark.parametrize(
    ("given", "limit"), [(3, 3), (0, 0), (-1, 0), (-0.5, 0), (2.9, 2), (2.0, 2), (1e20, 10**20), (-1e300, 0)]
)
def test_a_limit_is_converted_to_a_number_of_rows(given: float, limit: int) -> None:
    """A negative limit becomes 0, and a fraction is dropped."""
    assert plan({"limit": given}).limit == limit


def test_group_by_alone_counts() -> None:
    """A group without figures gets a count."""
    found = plan({"aggregate": {"group_by": ["a"]}}).aggregate
    assert found is not None
    assert found.count


@pytest.mark.parametrize(
    ("options", "field", "reported"),
    [
        ({"filter": "a == 1"}, "options.filter", "position 3"),
        ({"file_path": "/tmp/x"}, "options.file_path", "return_mode 'file' returns a handle, which read_result reads"),
        ({"filter": ""}, "options.filter", "empty"),
        ({"filter": 5}, "options.filter", "should be text"),
        ({"at": "a..b"}, "options.at", "position 3"),
        ({"at": ""}, "options.at", "missing"),
        ({"sort": "a"}, "options.sort", "should be a list of fields"),
        ({"sort": ["a", "-"]}, "options.sort.1", "missing"),
        ({"sort": [5]}, "options.sort.0", "should be a field"),
        ({"limit": True}, "options.limit", "a number of rows"),
        ({"limit": "5"}, "options.limit", "a number of rows"),
        ({"limit": float("nan")}, "options.limit", "a number of rows"),
        ({"limit": float("inf")}, "options.limit", "a number of rows"),
        ({"select_fields": []}, "options.select_fields", "names no field"),
        ({"select_fields": "a"}, "options.select_fields", "a list of paths"),
        ({"select_fields": ["a b"]}, "options.select_fields.0", "quote a name"),
        ({"select_fields": ["a"] * (MAX_PATHS + 1)}, "options.select_fields", f"at most {MAX_PATHS}"),
        ({"aggregate": "count"}, "options.aggregate", "should be an object"),
        ({"aggregate": {}}, "options.aggregate", "should be an object"),
        ({"aggregate": {"count": False}}, "options.aggregate", "is empty"),
        ({"aggregate": {"count": "id"}}, "options.aggregate.count", "should be true"),
        ({"aggregate": {"sum": []}}, "options.aggregate.sum", "names no field"),
        ({"aggregate": {"summ": ["a"]}}, "options.aggregate.summ", "did you mean 'sum'"),
        ({"return_mode": "inlin"}, "options.return_mode", "inline, summary, file"),
        ({"return_mode": ["inline"]}, "options.return_mode", "inline, summary, file"),
        ({"select": ["a"]}, "options.select", "did you mean 'select_fields'"),
        ({"x": 1}, "options.x", "possible are at, filter, sort"),
        (["a"], "options", "should be an object"),
    ],
)
def test_an_invalid_option_is_reported_by_its_name(options: Any, field: str, reported: str) -> None:
    """The message says what the option should be."""
    fields = wrong(options)
    assert list(fields) == [field]
    assert reported in fields[field]


def test_all_invalid_options_are_reported_at_once() -> None:
    """One error names every invalid option."""
    assert set(wrong({"filter": "a", "limit": "x", "sort": ["a", ""]})) == {
        "options.filter",
        "options.limit",
        "options.sort.1",
    }


def test_errors_use_the_name_of_the_options() -> None:
    """The name may be the path of a step's options, or empty if the options are arguments themselves."""
    assert set(wrong({"limit": "x"}, "steps.2.options")) == {"steps.2.options.limit"}
    assert set(wrong({"limit": "x"}, "")) == {"limit"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
named = st.dictionaries(
    st.sampled_from(["at", "filter", "sort", "limit", "select_fields", "aggregate", "return_mode", "other"]),
    json_values | st.lists(st.sampled_from(["a", "-a", "a.b"])) | st.fixed_dictionaries({"sum": json_values}),
)


@given(json_values | named)
def test_any_options_are_a_plan_or_an_argument_error(options: Any) -> None:
    """Options raise no other exception."""
    try:
        plan(options)
    except InvalidArgumentsError as error:
        assert error.executed == "no"  # noqa: PT017  # a plan is a valid result too
