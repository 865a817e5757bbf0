"""Converts Python values to parameters of PostgreSQL: columns of arrays, and texts without NUL."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import psycopg

_ESCAPE: Final = "\x01"


def pg_text(text: str) -> str:
    """Returns a text without NUL characters, which PostgreSQL refuses; different texts stay different. Most texts are
    returned unchanged.
    """
    if "\0" not in text and _ESCAPE not in text:
        return text
    return text.replace(_ESCAPE, "\x01\x01").replace("\0", "\x01\x02")


def text_of(stored: str) -> str:
    """Returns the original of a text that ``pg_text`` returned."""
    if _ESCAPE not in stored:
        return stored
    return stored.replace("\x01\x01", "\x01E").replace("\x01\x02", "\0").replace("\x01E", _ESCAPE)


def arrays(rows: Sequence[Sequence[Any]]) -> list[str]:
    """Returns the columns of rows as array literals, for ``unnest(%s::text[], ...)``. There must be at least one row;
    values are texts, bytes, numbers, booleans and None.

    psycopg's own arrays take five times as long, because they quote by regular expressions.
    """
    return [f"{{{','.join(map(_element, column))}}}" for column in zip(*rows, strict=True)]


def _element(value: Any) -> str:
    """One element of an array literal."""
    if isinstance(value, str):
        if '"' in value or "\\" in value:
            value = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{value}"'
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f'"\\\\x{value.hex()}"'
    if isinstance(value, bool):
        return "t" if value else "f"
    return repr(value)


def asked(
    connection: psycopg.Connection[tuple[Any, ...]], statement: str, values: Mapping[str, Any]
) -> Iterable[Sequence[Any]]:
    """Runs a statement with named values and returns its rows. Escapes texts, and restores them in the rows."""
    stored = {name: pg_text(value) if isinstance(value, str) else value for name, value in values.items()}
    rows = connection.execute(statement.encode(), stored)
    return [[text_of(value) if isinstance(value, str) else value for value in row] for row in rows]
