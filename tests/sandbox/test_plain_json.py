"""Values of the sandbox as plain JSON."""

import datetime as dt
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.sandbox.plain_json import NotPlainError, plain

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
def test_json_is_itself(value: Any) -> None:
    """Whatever JSON can hold stays as it is."""
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
def test_what_has_a_customary_form_takes_it(value: Any, expected: Any) -> None:
    """As ``json.dumps`` has it, where that has one."""
    assert plain(value) == expected


def test_keys_are_strings() -> None:
    """Numbers and null become what JSON writes them as."""
    assert plain({None: 1, 2.5: 2, 7: 3, False: 4}) == {"null": 1, "2.5": 2, "7": 3, "false": 4}


class Thing:
    """No JSON."""


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
def test_what_is_no_json_is_told_with_its_place(value: Any, message: str) -> None:
    """And what to do."""
    with pytest.raises(NotPlainError, match=message):
        plain(value)


def test_what_is_nested_too_deeply_is_told() -> None:
    """Long before Python's own stack would end."""
    value: list[Any] = []
    for _ in range(5_000):
        value = [value]
    with pytest.raises(NotPlainError, match="nested more than 100 deep"):
        plain(value)


def doubled(value: Any, times: int) -> Any:
    """A list of two that are the same list of two, and so on: a few objects, and 2**times values."""
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
def test_what_is_named_often_counts_as_often(value: Any, message: str) -> None:
    """Little that stands for very much is refused before it is made."""
    with pytest.raises(NotPlainError, match=message):
        plain(value)
