"""The kinds and sizes of JSON values."""

import datetime as dt
from typing import Any

import pytest
from toold.shaping import weight
from toold.shaping.value_kinds import is_null, is_number, kind_of, moment_of, text_of

UTC = dt.UTC


@pytest.mark.parametrize(
    ("value", "moment"),
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
def test_a_moment_is_text_that_writes_a_date(value: Any, moment: dt.datetime | None) -> None:
    """A date is its first moment, and a time without a zone is UTC; other spellings are text."""
    assert moment_of(value) == moment


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), (12, "12"), (1.5, "1.5"), (True, "true"), (False, "false"), (None, None), ([], None), ({}, None)],
)
def test_scalars_have_a_text_to_look_into(value: Any, text: str | None) -> None:
    """Numbers, true and false as JSON writes them; null, lists and objects have none."""
    assert text_of(value) == text


def test_an_integer_too_long_to_be_written_has_no_text() -> None:
    """Python refuses to write more than some thousand digits, and that is no error here."""
    assert text_of(10**5000) is None


def test_true_is_no_number_and_nan_is_null() -> None:
    """Python counts true among the numbers; JSON has no NaN."""
    numbers: list[Any] = [True, 1, 1.5, "1", None]
    assert [is_number(value) for value in numbers] == [False, True, True, False, False]
    nulls: list[Any] = [None, float("nan"), 0, "", []]
    assert [is_null(value) for value in nulls] == [True, True, False, False, False]


def test_kinds_have_the_names_of_json() -> None:
    """Each of JSON's types."""
    values: list[Any] = [None, True, "a", 1, 1.5, [], {}]
    assert [kind_of(value) for value in values] == ["null", "boolean", "string", "number", "number", "array", "object"]


@pytest.mark.parametrize(
    ("value", "bytes_"),
    [("four", 4), (7, 0), (None, 0), ([], 0), ([1, 2], 16), (["ab"], 10), ({"abc": "de"}, 13), ([[1], [2]], 32)],
)
def test_texts_names_and_places_count(value: Any, bytes_: int) -> None:
    """A text and a field's name count their characters, an element and a field 8 bytes more."""
    assert weight(value, 1_000) == bytes_


def test_what_is_shared_counts_as_often_as_it_is_used() -> None:
    """A value that is there ten times weighs ten times as much, though memory holds it once."""
    once = ["x" * 100]
    assert weight([once] * 10, 10_000) == 10 * weight([once], 10_000)


def test_it_looks_no_further_than_it_is_asked() -> None:
    """A value of 10^40 parts is found too large at once."""
    value: Any = "x"
    for _ in range(40):
        value = [value] * 10
    assert weight(value, 1_000) > 1_000
