"""Where the rows are."""

import copy
from typing import Any

import pytest
from toold.shaping.row_location import LocatedRows, locate
from toold.shaping.shaping_errors import NoListError
from toold.shaping.value_paths import parse_path

ROWS = [{"id": 1}, {"id": 2}]


def find_value(value: Any, at: str = "") -> LocatedRows:
    return locate(value, parse_path(at) if at else None)


@pytest.mark.parametrize(
    ("value", "at", "path"),
    [
        (ROWS, "", ""),
        ({"items": ROWS, "total": 2}, "", "items"),
        ({"data": {"items": ROWS}, "page": {"next": None}}, "", "data.items"),
        ({"items": ROWS, "other": [1]}, "items", "items"),
        ({"a": {"items": ROWS}, "b": []}, "a", "a.items"),
        ([[], ROWS], "[1]", "[1]"),
        ({"a.b": ROWS}, "", "['a.b']"),
    ],
)
def test_the_list_is_the_value_or_named_or_the_only_one(value: Any, at: str, path: str) -> None:
    """Its path is that in the whole value."""
    located = find_value(value, at)
    assert located.rows == ROWS
    assert str(located.path) == path


def test_several_lists_are_an_error_that_names_them() -> None:
    """An empty one is one too, so that it does not depend on the data which list is meant."""
    with pytest.raises(NoListError, match=r"several lists: items, errors, page.next; select one with at") as raised:
        _ = find_value({"items": ROWS, "errors": [], "page": {"next": [1]}}).rows
    assert raised.value.candidates == ("items", "errors", "page.next")


def test_candidates_are_named_as_at_takes_them() -> None:
    """From the whole value's beginning, and ten at most."""
    with pytest.raises(NoListError) as raised:
        _ = find_value({"in": {str(number): [] for number in range(20)}}, "in").rows
    assert raised.value.candidates[:2] == ("in.0", "in.1")
    assert len(raised.value.candidates) == 10
    assert "and more" in str(raised.value)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"a": 1, "b": {"c": [1][0]}}, "in the value (an object with the fields a, b)"),
        ({}, "an object without fields"),
        ("text", "(string)"),
        (None, "(null)"),
    ],
)
def test_no_list_is_told_with_what_there_is(value: Any, told: str) -> None:
    """Finding out is no error; asking for the rows is."""
    located = find_value(value)
    assert located.path is None
    with pytest.raises(NoListError) as raised:
        _ = located.rows
    assert told in str(raised.value)


def test_lists_within_lists_are_not_looked_for() -> None:
    """Only objects are opened, so that a row's own list is never taken for the rows."""
    assert str(find_value({"items": [{"tags": ["a"]}]}).path) == "items"


def test_a_place_that_is_not_there_is_told() -> None:
    """With what is there instead."""
    with pytest.raises(NoListError, match=r"at: `data.itms` is missing: `data` has no 'itms'; did you mean 'items'"):
        find_value({"data": {"items": ROWS}}, "data.itms")


def test_other_rows_keep_what_is_around_them() -> None:
    """The fields of the envelope stay, and the value that came in is not changed; what at names stands alone."""
    value = {"data": {"items": ROWS, "total": 2}, "page": 1}
    before = copy.deepcopy(value)
    assert find_value(value).replaced([]) == {"data": {"items": [], "total": 2}, "page": 1}
    assert find_value(value, "data").replaced([]) == {"items": [], "total": 2}
    assert find_value(value, "data.items").replaced([]) == []
    assert value == before


@pytest.mark.parametrize(
    ("value", "at", "around"),
    [
        ({"items": [1], "next": "c", "page": {"n": 1}}, None, {"next": "c", "page": {"n": 1}}),
        ({"data": {"items": [1], "next": "c"}, "total": 1}, None, {"data": {"next": "c"}, "total": 1}),
        ({"data": {"items": [1]}, "total": 1}, None, {"total": 1}),
        ({"data": {"items": [1], "next": "c"}, "total": 1}, "data", {"next": "c"}),
        ({"items": [1], "total": 1}, "items", {}),
        ([1], None, {}),
        ({"a": 1}, None, {}),
        ({"a": [1], "b": [2]}, None, {}),
    ],
)
def test_what_is_around_the_list_is_all_but_the_list(value: Any, at: str | None, around: dict[str, Any]) -> None:
    """Of what ``at`` names; nothing where there is not the one list, or no object that it stands in."""
    assert locate(value, parse_path(at) if at else None).around == around
