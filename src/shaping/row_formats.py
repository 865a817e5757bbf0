"""Rows as JSON, NDJSON and CSV: readers and writers."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from .shaping_errors import ShapingError

_decode: Final = msgspec.json.decode

csv.field_size_limit(2**31 - 1)  # for the whole process; the default rejects fields over 128 KiB


def from_json(data: bytes) -> Any:
    """The value of a JSON document.

    Raises:
        ShapingError: it is not valid JSON.
    """
    return _read(_decode, data)


def from_ndjson(data: bytes) -> list[Any]:
    """The rows of NDJSON, one per line.

    Raises:
        ShapingError: a line is not valid JSON.
    """
    return [_read(_decode, line) for line in data.splitlines() if line.strip()]


def from_csv(data: bytes) -> list[dict[str, Any]]:
    """The rows of CSV with a header; an empty field is null.

    CSV has no types. A column whose fields are all JSON of one type (numbers, booleans, or lists and objects) has that
    type; all other columns are texts.

    Raises:
        ShapingError: it is not UTF-8, or a line and the header differ in their number of fields.
    """
    text = _read(lambda data: data.decode(), data)
    lines = list(_read(lambda text: csv.reader(io.StringIO(text, newline=""), strict=True), text))
    if not lines:
        return []
    names, rows = lines[0], lines[1:]
    if any(len(row) != len(names) for row in rows):
        raise ShapingError("a line of the CSV has a different number of fields than its header")
    columns = [_typed([row[index] for row in rows]) for index in range(len(names))]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _typed(fields: list[str]) -> list[Any]:
    """The values of one column; empty fields are null."""
    values = [_value(field) for field in fields if field]
    kinds = {type(value) for value in values}
    if not any(kinds <= same for same in ({int, float}, {bool}, {list, dict})):
        return [field or None for field in fields]
    typed = iter(values)
    return [next(typed) if field else None for field in fields]


def _value(field: str) -> Any:
    """The JSON value of a field, or the field as text if it is not JSON."""
    try:
        return _decode(field)
    except (msgspec.DecodeError, RecursionError):
        return field


def _read(read: Callable[[Any], Any], data: Any) -> Any:
    try:
        return read(data)
    except (msgspec.DecodeError, ValueError, RecursionError, csv.Error) as error:
        raise ShapingError(f"the file cannot be read ({error})") from None


PIECE_BYTES: Final = 64 * 1024
"""The approximate size of a piece; one row can exceed it."""
VALUE_COLUMN: Final = "value"
"""The CSV column of rows that are not objects, and the only column if no row has a field."""

_encode: Final = msgspec.json.encode


def as_json(rows: Sequence[Any]) -> Iterator[bytes]:
    """One JSON array, one row per line."""
    return _pieces(_array(rows))


def as_ndjson(rows: Sequence[Any]) -> Iterator[bytes]:
    """One row per line."""
    return _pieces(_encode(row) + b"\n" for row in rows)


def as_csv(rows: Sequence[Any]) -> Iterator[bytes]:
    """CSV as in RFC 4180, in UTF-8, with a header of all fields of all rows in the order in which they first occur.

    Null and missing values are empty; booleans, lists and objects are written as JSON.
    """
    columns = dict.fromkeys(name for row in rows for name in (row if isinstance(row, dict) else (VALUE_COLUMN,)))
    # Without a column there would be no lines.
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
