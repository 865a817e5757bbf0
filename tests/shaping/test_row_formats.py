"""Readers and writers of row formats."""

import csv
import io
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.shaping import ShapingError, as_csv, as_json, as_ndjson, from_csv, from_json, from_ndjson
from toold.shaping.row_formats import PIECE_BYTES

numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.lists(values, max_size=5))
def test_json_reads_back_unchanged(rows: list[Any]) -> None:
    """Any rows can be written and read as a JSON array and as NDJSON."""
    assert from_json(b"".join(as_json(rows))) == rows
    assert from_ndjson(b"".join(as_ndjson(rows))) == rows


def test_csv_columns_keep_their_types() -> None:
    """Numbers, booleans, lists and objects are restored; codes and columns of mixed types are text."""
    rows = [
        {"id": 1, "price": 2.5, "open": True, "tags": ["a"], "code": "007", "mixed": "x", "note": None},
        {"id": 2, "price": None, "open": False, "tags": {"b": 1}, "code": "12", "mixed": "5", "note": 'a "b",\n c'},
    ]
    assert from_csv(b"".join(as_csv(rows))) == rows


def test_csv_loses_some_types() -> None:
    """A column of numerals is read as numbers, and an empty text is read as null."""
    assert from_csv(b"".join(as_csv([{"id": "12", "name": ""}]))) == [{"id": 12, "name": None}]


def test_an_empty_file_has_no_rows() -> None:
    """This is the same in every format."""
    assert [read(b"") for read in (from_csv, from_ndjson)] == [[], []]
    assert from_json(b"".join(as_json([]))) == []


def test_csv_keeps_the_number_of_rows_without_fields() -> None:
    """Each row is written with a null column, because CSV has no rows without columns."""
    assert from_csv(b"".join(as_csv([{}, {}, {}]))) == [{"value": None}] * 3


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (from_json, b"{"),
        (from_ndjson, b"1\n{"),
        (from_csv, b"a,b\n1\n"),
        (from_csv, b"a\n\xff\n"),
        (from_json, b"[" * 10**5),
    ],
    ids=["json", "ndjson", "csv", "no text", "too deep"],
)
def test_a_damaged_file_is_an_error(read: Any, data: bytes) -> None:
    """A damaged file raises a ShapingError instead of returning some of its rows."""
    with pytest.raises(ShapingError):
        read(data)


def test_csv_numbers_are_restored_exactly() -> None:
    """Large numbers and numbers with many digits read back unchanged."""
    assert from_csv(b"".join(as_csv([{"n": 1e308}, {"n": math.pi}]))) == [{"n": 1e308}, {"n": math.pi}]


ROWS: list[Any] = [{"id": 1, "name": 'Ann, "A"'}, {"id": None, "tags": ["a", {"b": 1}], "ok": True}, "plain"]


def test_json_is_written_as_one_array() -> None:
    """The array has one row per line; without rows it is empty."""
    assert b"".join(as_json(ROWS)).decode().splitlines()[1] == '{"id":1,"name":"Ann, \\"A\\""},'
    assert json.loads(b"".join(as_json(ROWS))) == ROWS
    assert json.loads(b"".join(as_json([]))) == []


def test_ndjson_has_one_row_per_line() -> None:
    """A line break in a text is escaped."""
    rows = [*ROWS, {"text": "two\nlines"}]
    lines = b"".join(as_ndjson(rows)).decode().splitlines()
    assert [json.loads(line) for line in lines] == rows


def test_csv_has_the_fields_of_all_rows() -> None:
    """Columns are in the order of first use.

    Null and missing values are empty; lists, objects and booleans are JSON.
    """
    assert b"".join(as_csv(ROWS)).decode() == (
        'id,name,tags,ok,value\r\n1,"Ann, ""A""",,,\r\n,,"[""a"",{""b"":1}]",true,\r\n,,,,plain\r\n'
    )
    assert list(as_csv([])) == []


def test_csv_does_not_escape_formulas() -> None:
    """The file is for programs, which must read the original text."""
    assert b"".join(as_csv([{"a": "=1+1"}, {"a": "-5"}])) == b"a\r\n=1+1\r\n-5\r\n"


def test_large_files_are_written_in_pieces() -> None:
    """The size of a piece is bounded, independent of the number and size of the rows."""
    rows = [{"text": "x" * 1000} for _ in range(1000)] + [{"text": "y" * 3 * PIECE_BYTES}]
    for write in (as_json, as_ndjson, as_csv):
        pieces = list(write(rows))
        assert len(pieces) > 10
        assert max(map(len, pieces[:-2])) < PIECE_BYTES + 1100
    assert json.loads(b"".join(as_json(rows))) == rows


texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.fixed_dictionaries({"a": texts, "b": texts})))
def test_csv_text_reads_back_unchanged(rows: list[dict[str, str]]) -> None:
    """Python's CSV reader restores any text, including quotes, commas and line breaks."""
    text = b"".join(as_csv(rows)).decode()
    assert list(csv.DictReader(io.StringIO(text, newline=""))) == rows
