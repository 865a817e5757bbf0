"""The order of values and the sorting of rows."""

import copy
import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from toold.shaping.sort_order import SortKey, identity, order_key, sort_rows
from toold.shaping.value_paths import parse_path

IN_ORDER = [False, True, -1, 0, 0.5, 2, "", "1", "A", "a", "B", "zz", "é", [1], [2], {"a": 1}, {"b": 0}]
values = st.sampled_from([*IN_ORDER, None, float("nan")])


def sort(rows: list[Any], *fields: str) -> list[Any]:
    keys = [SortKey(parse_path(field.removeprefix("-")), descending=field.startswith("-")) for field in fields]
    return sort_rows(rows, keys)


def of(rows: list[Any], name: str = "x") -> list[Any]:
    return [row.get(name) for row in rows]


@given(st.permutations(IN_ORDER))
def test_values_have_a_total_order(shuffled: list[Any]) -> None:
    """The order is false, true, numbers, text, lists, objects."""
    assert repr(of(sort([{"x": value} for value in shuffled], "x"))) == repr(IN_ORDER)
    assert repr(of(sort([{"x": value} for value in shuffled], "-x"))) == repr(IN_ORDER[::-1])


def test_rows_without_a_value_are_last_in_both_directions() -> None:
    """Null, NaN and missing values keep their relative order."""
    rows: list[dict[str, Any]] = [
        {"x": None, "n": 1},
        {"x": 1, "n": 2},
        {"n": 3},
        {"x": 5, "n": 4},
        {"x": float("nan"), "n": 5},
    ]
    assert of(sort(rows, "x"), "n") == [2, 4, 1, 3, 5]
    assert of(sort(rows, "-x"), "n") == [4, 2, 1, 3, 5]


def test_further_fields_break_ties() -> None:
    """Each field has its own direction and may be nested."""
    rows = [{"a": {"b": 1}, "c": 1}, {"a": {"b": 2}, "c": 1}, {"a": {"b": 1}, "c": 3}]
    assert sort(rows, "-a.b", "-c") == [rows[1], rows[2], rows[0]]
    assert sort(rows, "c", "a.b") == [rows[0], rows[1], rows[2]]


@given(st.lists(st.fixed_dictionaries({"x": values, "y": values})), st.booleans())
def test_sorting_is_stable_and_keeps_all_rows(rows: list[Any], down: bool) -> None:
    """Equal rows keep their order in both directions, and the input list is not modified."""
    numbered = [{**row, "n": number} for number, row in enumerate(rows)]
    before = copy.copy(numbered)
    found = sort(numbered, "-x" if down else "x")
    assert numbered == before
    assert sorted(of(found, "n")) == list(range(len(rows)))
    for one, other in itertools.pairwise(found):
        if identity(one["x"]) == identity(other["x"]):
            assert one["n"] < other["n"]


@given(st.lists(st.integers() | st.floats(allow_nan=False)) | st.lists(st.text()))
def test_the_fast_sort_key_gives_the_same_order(column: list[Any]) -> None:
    """Columns of only numbers or only text use a simpler key."""
    assert of(sort([{"x": value} for value in column], "x")) == sorted(column, key=order_key)


def test_identity_distinguishes_types_and_case() -> None:
    """1 and 1.0 are identical, and so are null and NaN; true differs from 1, 'a' from 'A', and '1' from 1."""
    kinds = [1, True, "1", "a", "A", None, [1], {"a": 1}]
    assert len({identity(value) for value in kinds}) == len(kinds)
    assert identity(1) == identity(1.0)
    assert identity(None) == identity(float("nan"))
    assert identity({"a": 1, "b": 2}) == identity({"b": 2, "a": 1})
