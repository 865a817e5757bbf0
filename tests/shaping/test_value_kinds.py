"""Types and sizes of JSON values."""

import datetime as dt
from typing import Any

import pytest
from toold.shaping import weight
from toold.shaping.value_kinds import is_null, is_number, kind_of, parse_timestamp, text_of

UTC = dt.UTC


@pytest.mark.parametrize(
    ("value", "timestamp"),
    [
        ("2024-01-15", dt.datetime(2024, 1, 15, tzinfo=UTC)),
        ("2024-01-15T10:30", dt.datetime(2024, 1, 15, 10, 30, tzinfo=UTC)),
        ("2024-01-15 10:30:05Z", dt.datetime(2024, 1, 15, 10, 30, 5, tzinfo=UTC)),
        ("2024-01-15t10:30:05.25z", dt.datetime(2024, 1, 15, 10, 30, 5, 250_000, tzinfo=UTC)),
        ("2024-01-15T10:30:05+02:00", dt.datetime(2024, 1, 15, 8, 30, 5, tzinfo=UTC)),
        ("2024-02-30", None),
        ("2024-01-15T25:00", None),
        ("20240115", None),
        ("2024-W03-1", None),
        ("on 2024-01-15", None),
        ("", None),
        (20240115, None),
        (None, None),
    ],
)
def test_a_moment_is_text_with_an_iso_date(value: Any, timestamp: dt.datetime | None) -> None:
    """A date is its first moment, and a time without a zone is UTC; any other notation is text."""
    assert parse_timestamp(value) == timestamp


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), (12, "12"), (1.5, "1.5"), (True, "true"), (False, "false"), (None, None), ([], None), ({}, None)],
)
def test_scalars_have_a_text(value: Any, text: str | None) -> None:
    """Numbers and booleans have their JSON notation; null, lists and objects have no text."""
    assert text_of(value) == text


def test_a_very_long_integer_has_no_text() -> None:
    """Python refuses to format integers of many digits; this causes no error."""
    assert text_of(10**5000) is None


def test_true_is_not_a_number_and_nan_is_null() -> None:
    """In Python, bool is a subclass of int; JSON has no NaN."""
    numbers: list[Any] = [True, 1, 1.5, "1", None]
    assert [is_number(value) for value in numbers] == [False, True, True, False, False]
    nulls: list[Any] = [None, float("nan"), 0, "", []]
    assert [is_null(value) for value in nulls] == [True, True, False, False, False]


def test_types_have_their_json_names() -> None:
    """Each JSON type is covered."""
    values: list[Any] = [None, True, "a", 1, 1.5, [], {}]
    assert [kind_of(value) for value in values] == ["null", "boolean", "string", "number", "number", "array", "object"]


@pytest.mark.parametrize(
    ("value", "bytes_"),
    [("four", 4), (7, 0), (None, 0), ([], 0), ([1, 2], 16), (["ab"], 10), ({"abc": "de"}, 13), ([[1], [2]], 32)],
)
def test_weight_counts_text_names_and_elements(value: Any, bytes_: int) -> None:
    """Text and field names count their characters; each element and each field counts 8 bytes."""
    assert weight(value, 1_000) == bytes_


def test_shared_values_count_each_time() -> None:
    """A value that is used ten times has ten times the weight, although it is in memory once."""
    once = ["x" * 100]
    assert weight([once] * 10, 10_000) == 10 * weight([once], 10_000)


def test_weight_stops_at_its_limit() -> None:
    """A value of 10^40 parts is measured quickly."""
    value: Any = "x"
    for _ in range(40):
        value = [value] * 10
    assert weight(value, 1_000) > 1_000
