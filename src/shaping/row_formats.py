"""Rows as JSON, NDJSON and CSV: readers and writers."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from .shaping_errors import ShapingError

_decode: Final = msgspec.json.decode

csv.field_size_limit(2**31 - 1)  # of the whole process; by itself a field of 128 KiB would be an error


def from_json(data: bytes) -> Any:
    """The value of a JSON document.

    Raises:
        ShapingError: it is none.
    """
    return _whole(_decode, data)


def from_ndjson(data: bytes) -> list[Any]:
    """A row a line.

    Raises:
        ShapingError: a line is no JSON.
    """
    return [_whole(_decode, line) for line in data.splitlines() if line.strip()]


def from_csv(data: bytes) -> list[dict[str, Any]]:
    """A row for each line behind the header; an empty field is null.

    CSV has no types. A column is numbers, or true and false, or lists and objects, where JSON reads every field of it
    as one of those; else it is text as it stands.

    Raises:
        ShapingError: it is no UTF-8, or a line has other fields than the header.
    """
    text = _whole(lambda whole: whole.decode(), data)
    lines = list(_whole(lambda whole: csv.reader(io.StringIO(whole, newline=""), strict=True), text))
    if not lines:
        return []
    names, rows = lines[0], lines[1:]
    if any(len(row) != len(names) for row in rows):
        raise ShapingError("a line of the CSV has other fields than its header")
    columns = [_typed([row[index] for row in rows]) for index in range(len(names))]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _typed(fields: list[str]) -> list[Any]:
    """One column: null where it is empty."""
    values = [_value(field) for field in fields if field]
    kinds = {type(value) for value in values}
    if not any(kinds <= same for same in ({int, float}, {bool}, {list, dict})):
        return [field or None for field in fields]
    typed = iter(values)
    return [next(typed) if field else None for field in fields]


def _value(field: str) -> Any:
    """What JSON reads; of anything else the text."""
    try:
        return _decode(field)
    except (msgspec.DecodeError, RecursionError):
        return field


def _whole(read: Callable[[Any], Any], data: Any) -> Any:
    try:
        return read(data)
    except (msgspec.DecodeError, ValueError, RecursionError, csv.Error) as error:
        raise ShapingError(f"the file cannot be read ({error})") from None


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
