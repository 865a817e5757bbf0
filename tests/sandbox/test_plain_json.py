"""Conversion of sandbox values to plain JSON."""

import datetime as dt
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.sandbox.plain_json import NotJsonError, plain

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(json_values)
def test_json_is_unchanged(value: Any) -> None:
    """Any JSON value is returned unchanged."""
    assert plain(value) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, 2), [1, 2]),
        ({3}, [3]),
        (dt.date(2026, 3, 1), "2026-03-01"),
        (dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC), "2026-03-01T12:00:00+00:00"),
        (math.nan, None),
        (-math.inf, None),
    ],
)
def test_values_with_a_standard_json_form_are_converted(value: Any, expected: Any) -> None:
    """Tuples, sets and dates are converted; NaN and infinity become null."""
    assert plain(value) == expected


def test_keys_become_strings() -> None:
    """Numbers, booleans and null are converted as ``json.dumps`` does."""
    assert plain({None: 1, 2.5: 2, 7: 3, False: 4}) == {"null": 1, "2.5": 2, "7": 3, "false": 4}


class Thing:
    """An object that is not JSON."""


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1, Thing()]}, r"the value\['a'\]\[1\] is a Thing, which is not JSON"),
        ({(1, 2): 3}, "has a key that is a tuple"),
        (2**70, r"more than 64 bits; convert it with str\(\)"),
        (b"x", "is a bytes"),
        ("dict_keys(['a'])", r"is a dict_keys, which is not JSON; convert it with list\(\)"),
        ("<coroutine object main>", "is a call that was not awaited"),
    ],
)
def test_a_value_that_is_not_json_is_reported_with_its_path(value: Any, message: str) -> None:
    """The message gives the path of the value and suggests a conversion."""
    with pytest.raises(NotJsonError, match=message):
        plain(value)


def test_deep_nesting_is_rejected() -> None:
    """The limit is far below the depth at which Python's stack overflows."""
    value: list[Any] = []
    for _ in range(5_000):
        value = [value]
    with pytest.raises(NotJsonError, match="nested more than 100 deep"):
        plain(value)


def doubled(value: Any, times: int) -> Any:
    """Nest pairs of the same list: the result has few objects, but 2**times values."""
    for _ in range(times):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (doubled(0, 60), "the value contains more than 1,000,000 values"),
        (doubled("x" * 1_000_000, 6), "the value contains more than 33,554,432 characters of text"),
        ([{"k" * 1_000_000: 1}] * 40, "the value contains more than 33,554,432 characters of text"),
    ],
)
def test_repeated_references_count_each_time(value: Any, message: str) -> None:
    """A small object graph that expands to very large JSON is rejected before it is expanded."""
    with pytest.raises(NotJsonError, match=message):
        plain(value)
