"""Rows as JSON, NDJSON or CSV, in pieces: so that a large file is never whole in memory, and the loop gets its turns.

CSV has values as they are, and nothing is put before a text that begins with ``=``: the file is for programs. Whoever
opens it in a spreadsheet has it read as text.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

PIECE_BYTES: Final = 64 * 1024
"""A piece is about this large, or as large as its largest row."""
VALUE_COLUMN: Final = "value"
"""In CSV the column of rows that are no objects, and of those where no row has a field."""

_encode: Final = msgspec.json.encode


def as_json(rows: Sequence[Any]) -> Iterator[bytes]:
    """One JSON array, a row a line."""
    return _pieces(_array(rows))


def as_ndjson(rows: Sequence[Any]) -> Iterator[bytes]:
    """A row a line."""
    return _pieces(_encode(row) + b"\n" for row in rows)


def as_csv(rows: Sequence[Any]) -> Iterator[bytes]:
    """As RFC 4180 has it, in UTF-8, with a header: every field of any row, in the order in which they first come.

    Null and missing are empty; true, false, lists and objects are written as JSON.
    """
    columns = dict.fromkeys(name for row in rows for name in (row if isinstance(row, dict) else (VALUE_COLUMN,)))
    # A line without a column would be none.
    return _pieces(_lines(rows, list(columns) or [VALUE_COLUMN]) if rows else ())


def _array(rows: Sequence[Any]) -> Iterator[bytes]:
    yield b"["
    for index, row in enumerate(rows):
        yield (b",\n" if index else b"\n") + _encode(row)
    yield b"\n]\n"


def _lines(rows: Sequence[Any], columns: list[str]) -> Iterator[bytes]:
    line = io.StringIO(newline="")
    writer = csv.writer(line)
    writer.writerow(columns)
    for row in rows:
        fields: Mapping[str, Any] = row if isinstance(row, dict) else {VALUE_COLUMN: row}
        writer.writerow([_cell(fields.get(column)) for column in columns])
        yield line.getvalue().encode()
        line.seek(0)
        line.truncate()


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    return _encode(value).decode()


def _pieces(parts: Iterable[bytes]) -> Iterator[bytes]:
    piece = bytearray()
    for part in parts:
        piece += part
        if len(piece) >= PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    if piece:
        yield bytes(piece)
