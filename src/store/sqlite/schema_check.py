"""Compares the definitions in a SQLite database with those of the schema."""

import contextlib
import re
import sqlite3
from typing import Final

from ..schema_difference import SchemaDifference, compared
from .store_schema import STEPS

_COMMENT: Final = re.compile(r"--[^\n]*")
"""The comments of the schema files, which SQLite stores. They may differ in an older database."""


def schema_differences(connection: sqlite3.Connection) -> list[SchemaDifference]:
    """Returns the definitions of an open database of the current schema that were added, removed or changed.

    Raises:
        sqlite3.Error: the database cannot be read.
    """
    with contextlib.closing(sqlite3.connect(":memory:")) as expected:
        for step in STEPS:
            expected.executescript(step)
        known = _definitions(expected)
    return compared(known, _definitions(connection))


def _definitions(connection: sqlite3.Connection) -> dict[tuple[str, str], str]:
    """(kind, name) → the definition without comments and line breaks; without SQLite's own tables and indexes."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
    return {(kind, name): " ".join(_COMMENT.sub("", sql or "").split()) for kind, name, sql in rows}
