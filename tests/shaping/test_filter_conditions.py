"""Filters as values: printing and paths."""

import datetime as dt

from hypothesis import given
from hypothesis import strategies as st
from toold.shaping.filter_conditions import (
    ON_TEXT,
    ORDERING,
    WITHOUT_VALUE,
    And,
    Filter,
    FilterCondition,
    FilterOperator,
    Not,
    Or,
    paths_of,
)
from toold.shaping.filter_parser import parse_filter
from toold.shaping.value_paths import EVERY, ValuePath

paths = st.lists(st.text(max_size=5) | st.integers(-99, 99) | st.just(EVERY), min_size=1, max_size=4).map(
    lambda steps: ValuePath(tuple(steps))
)
ordered = (
    st.text()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.datetimes(timezones=st.just(dt.UTC)).map(lambda moment: moment.replace(fold=0))
)
literals = ordered | st.booleans() | st.none()
conditions = st.one_of(
    st.builds(FilterCondition, paths, st.sampled_from([FilterOperator.EQUAL, FilterOperator.NOT_EQUAL]), literals),
    st.builds(FilterCondition, paths, st.sampled_from(sorted(ORDERING)), ordered),
    st.builds(FilterCondition, paths, st.sampled_from(sorted(ON_TEXT - {FilterOperator.MATCHES})), st.text()),
    st.builds(FilterCondition, paths, st.just(FilterOperator.MATCHES), st.sampled_from([r"^\d+'", "a|b", r"\\", '"']))
    | st.builds(
        FilterCondition, paths, st.just(FilterOperator.IN), st.lists(literals, min_size=1, max_size=4).map(tuple)
    ),
    st.builds(FilterCondition, paths, st.sampled_from(sorted(WITHOUT_VALUE))),
)
filters = st.recursive(
    conditions,
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(And, st.lists(inner, min_size=2, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, min_size=2, max_size=3).map(tuple))
    ),
    max_leaves=8,
)


@given(filters)
def test_a_printed_filter_parses_to_itself(condition: Filter) -> None:
    """The structure and the types of the values are kept."""
    parsed = parse_filter(str(condition))
    assert parsed == condition
    assert repr(parsed) == repr(condition)  # because 1, 1.0 and True are equal


def test_only_necessary_parentheses_are_printed() -> None:
    """Redundant parentheses are omitted."""
    text = "(a = 1 OR b = 'x') AND NOT c IN (1, null) OR NOT (d IS_NULL AND e CONTAINS 'y')"
    assert str(parse_filter(f"(({text}))")) == text


def test_paths_of_returns_the_fields_of_a_filter() -> None:
    """The fields are in the order of the text."""
    condition = parse_filter("NOT (a.b = 1 OR c IS_NULL) AND d[0] IN (1)")
    assert [str(path) for path in paths_of(condition)] == ["a.b", "c", "d[0]"]
