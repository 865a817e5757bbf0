"""Aggregation of rows."""

from typing import Any

import pytest
from toold.shaping.aggregation import FIGURES, Aggregation, aggregate, not_numbers
from toold.shaping.value_paths import parse_path

ROWS = [
    {"status": "open", "amount": 10, "tags": ["a", "b"]},
    {"status": "done", "amount": 2.5, "tags": ["a"]},
    {"status": "open", "amount": None, "tags": []},
    {"amount": "12"},
    {"status": "Open", "amount": True},
]


def figures(rows: list[Any], group_by: str = "", *, count: bool = False, **fields: str) -> Any:
    groups = (parse_path(group_by),) if group_by else ()
    return aggregate(rows, Aggregation(groups, count, {name: (parse_path(field),) for name, field in fields.items()}))


def test_all_figures_without_groups() -> None:
    """Null and missing values are ignored; sum and average also ignore values that are not numbers."""
    assert figures(ROWS, count=True, sum="amount", avg="amount", min="amount", max="amount", unique="status") == {
        "count": 5,
        "sum": {"amount": 12.5},
        "avg": {"amount": 6.25},
        "min": {"amount": True},
        "max": {"amount": "12"},
        "unique": {"status": ["open", "done", "Open"]},
    }


def test_figures_of_no_rows() -> None:
    """The sum is 0, and average, minimum and maximum are null."""
    assert figures([], count=True, sum="x", avg="x", min="x", max="x", unique="x") == {
        "count": 0,
        "sum": {"x": 0},
        "avg": {"x": None},
        "min": {"x": None},
        "max": {"x": None},
        "unique": {"x": []},
    }
    assert figures([], "status", count=True) == []


def test_groups_have_the_order_of_their_first_rows() -> None:
    """Grouping is case-sensitive; rows without the field form a group with the value null."""
    assert figures(ROWS, "status", count=True, sum="amount") == [
        {"group": {"status": "open"}, "count": 2, "sum": {"amount": 10}},
        {"group": {"status": "done"}, "count": 1, "sum": {"amount": 2.5}},
        {"group": {"status": None}, "count": 1, "sum": {"amount": 0}},
        {"group": {"status": "Open"}, "count": 1, "sum": {"amount": 0}},
    ]


def test_rows_can_be_grouped_by_two_fields() -> None:
    """Each pair of values is a group; 1 and 1.0 are the same value, true is a different one."""
    rows = [{"a": 1, "b": {"c": "x"}}, {"a": 1.0, "b": {"c": "x"}}, {"a": True, "b": {"c": "x"}}]
    wanted = Aggregation((parse_path("a"), parse_path("b.c")), count=True, figures={})
    assert aggregate(rows, wanted) == [
        {"group": {"a": 1, "b.c": "x"}, "count": 2},
        {"group": {"a": True, "b.c": "x"}, "count": 1},
    ]


def test_list_elements_count_with_a_wildcard() -> None:
    """With [*] each element is a value; without it the list is one value."""
    assert figures(ROWS, unique="tags[*]")["unique"]["tags[*]"] == ["a", "b"]
    assert figures([{"tags": [None, "a"]}], unique="tags[*]")["unique"]["tags[*]"] == ["a"]
    assert figures(ROWS, unique="tags")["unique"]["tags"] == [["a", "b"], ["a"], []]


def test_values_that_are_not_numbers_are_counted() -> None:
    """The count covers the values that sum and average ignore; fields of other figures are not reported."""
    wanted = Aggregation((), count=False, figures={"sum": (parse_path("amount"),), "min": (parse_path("status"),)})
    assert not_numbers(ROWS, wanted) == {"amount": 2}
    assert not_numbers(ROWS[:3], wanted) == {}


@pytest.mark.parametrize(
    ("numbers", "total", "average"),
    [
        ([0.1] * 10, 1.0, 0.1),
        ([2**80, 1], 2**80 + 1, (2**80 + 1) / 2),
        ([1e308, 1e308], None, None),
        ([float("inf"), float("-inf")], None, None),
        ([float("inf")], None, None),
        ([10**400], 10**400, None),
        ([10**400, 0.5], None, None),
    ],
)
def test_sums_are_exact_or_null(numbers: list[Any], total: Any, average: Any) -> None:
    """Integers are exact, and floats are rounded once; a result that exceeds the range of a double is null."""
    assert (FIGURES["sum"](numbers), FIGURES["avg"](numbers)) == (total, average)
