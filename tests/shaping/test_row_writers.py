"""Rows as bytes."""

import csv
import io
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from toold.shaping.row_writers import PIECE_BYTES, as_csv, as_json, as_ndjson

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
