"""Readers and writers of rows."""

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
def test_json_is_read_as_it_was_written(rows: list[Any]) -> None:
    """Any rows, in one array or a row a line."""
    assert from_json(b"".join(as_json(rows))) == rows
    assert from_ndjson(b"".join(as_ndjson(rows))) == rows


def test_csv_has_the_types_that_a_whole_column_has() -> None:
    """Numbers, true and false, and lists and objects come back as such; codes and mixed columns as text."""
    rows = [
        {"id": 1, "price": 2.5, "open": True, "tags": ["a"], "code": "007", "mixed": "x", "note": None},
        {"id": 2, "price": None, "open": False, "tags": {"b": 1}, "code": "12", "mixed": "5", "note": 'a "b",\n c'},
    ]
    assert from_csv(b"".join(as_csv(rows))) == rows


def test_what_csv_cannot_tell_is_said() -> None:
    """A column of nothing but numerals is numbers, whatever it was; an empty text is null."""
    assert from_csv(b"".join(as_csv([{"id": "12", "name": ""}]))) == [{"id": 12, "name": None}]


def test_nothing_is_no_rows() -> None:
    """A file without rows has none in any format."""
    assert [read(b"") for read in (from_csv, from_ndjson)] == [[], []]
    assert from_json(b"".join(as_json([]))) == []


def test_rows_without_fields_are_as_many_in_csv() -> None:
    """Each is a line, of null, since CSV has none without a column."""
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
def test_what_is_damaged_is_told(read: Any, data: bytes) -> None:
    """A file that somebody changed is an error in words, never half of its rows."""
    with pytest.raises(ShapingError):
        read(data)


def test_numbers_stay_numbers() -> None:
    """The largest that JSON's readers take come back as they were."""
    assert from_csv(b"".join(as_csv([{"n": 1e308}, {"n": math.pi}]))) == [{"n": 1e308}, {"n": math.pi}]


ROWS: list[Any] = [{"id": 1, "name": 'Ann, "A"'}, {"id": None, "tags": ["a", {"b": 1}], "ok": True}, "plain"]


def test_json_is_one_array() -> None:
    """A row a line; of no rows an empty one."""
    assert b"".join(as_json(ROWS)).decode().splitlines()[1] == '{"id":1,"name":"Ann, \\"A\\""},'
    assert json.loads(b"".join(as_json(ROWS))) == ROWS
    assert json.loads(b"".join(as_json([]))) == []


def test_ndjson_is_a_row_a_line() -> None:
    """Also where a text has a line break in it."""
    rows = [*ROWS, {"text": "two\nlines"}]
    lines = b"".join(as_ndjson(rows)).decode().splitlines()
    assert [json.loads(line) for line in lines] == rows


def test_csv_has_every_field_of_any_row() -> None:
    """In the order in which they first come; null and missing are empty, lists, objects and true are JSON."""
    assert b"".join(as_csv(ROWS)).decode() == (
        'id,name,tags,ok,value\r\n1,"Ann, ""A""",,,\r\n,,"[""a"",{""b"":1}]",true,\r\n,,,,plain\r\n'
    )
    assert list(as_csv([])) == []


def test_csv_leaves_text_as_it_is() -> None:
    """A formula too: the file is for programs, which must get back what was there."""
    assert b"".join(as_csv([{"a": "=1+1"}, {"a": "-5"}])) == b"a\r\n=1+1\r\n-5\r\n"


def test_large_files_come_in_pieces() -> None:
    """Each about as large as is said, however many rows there are, and however large one is."""
    rows = [{"text": "x" * 1000} for _ in range(1000)] + [{"text": "y" * 3 * PIECE_BYTES}]
    for write in (as_json, as_ndjson, as_csv):
        pieces = list(write(rows))
        assert len(pieces) > 10
        assert max(map(len, pieces[:-2])) < PIECE_BYTES + 1100
    assert json.loads(b"".join(as_json(rows))) == rows


texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.fixed_dictionaries({"a": texts, "b": texts})))
def test_csv_reads_back(rows: list[dict[str, str]]) -> None:
    """Text of any kind: quotes, commas, line breaks."""
    text = b"".join(as_csv(rows)).decode()
    assert list(csv.DictReader(io.StringIO(text, newline=""))) == rows
