"""Compares the definitions in a database with those of the schema.

Rows are signed; a trigger, view or index is not. An added trigger could copy, change or delete what is written next.
"""

import contextlib
import re
import sqlite3
from typing import Final, Literal, NamedTuple

from .store_schema import STEPS

_COMMENT: Final = re.compile(r"--[^\n]*")
"""The schema files' comments, which SQLite stores; they may have other words in an older file."""


class SchemaDifference(NamedTuple):
    """A definition that differs from the schema."""

    fault: Literal["added", "missing", "changed"]
    kind: str
    """``table``, ``index``, ``trigger`` or ``view``."""
    name: str


def schema_differences(connection: sqlite3.Connection) -> list[SchemaDifference]:
    """Returns the definitions of an open database of the current schema that were added, removed or changed.

    Raises:
        sqlite3.Error: the database cannot be read.
    """
    with contextlib.closing(sqlite3.connect(":memory:")) as expected:
        for step in STEPS:
            expected.executescript(step)
        known = _definitions(expected)
    actual = _definitions(connection)
    return [
        SchemaDifference(fault, *place)
        for place in sorted(known.keys() | actual.keys())
        if (fault := _fault(known.get(place), actual.get(place))) is not None
    ]


def _fault(known: str | None, actual: str | None) -> Literal["added", "missing", "changed"] | None:
    if known == actual:
        return None
    return "added" if known is None else "missing" if actual is None else "changed"


def _definitions(connection: sqlite3.Connection) -> dict[tuple[str, str], str]:
    """(kind, name) → the definition without comments and line breaks; without SQLite's own tables and indexes."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
    return {(kind, name): " ".join(_COMMENT.sub("", sql or "").split()) for kind, name, sql in rows}
