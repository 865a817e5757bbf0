"""The comparison of a database's definitions with the schema."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from toold.store.schema_difference import SchemaDifference
from toold.store.sqlite.schema_check import schema_differences
from toold.store.sqlite.store_schema import SCHEMA, STEPS, open_database


@pytest.mark.parametrize("first", [0, 1, 5, SCHEMA - 1])
def test_migrated_databases_have_no_difference(database: Path, first: int) -> None:
    """A database that began with an older schema and other comments has the definitions of a new one."""
    with closing(sqlite3.connect(database)) as older:
        for number, step in enumerate(STEPS[:first], start=1):
            older.executescript(f"{re.sub('--.*', '-- other words', step)}; PRAGMA user_version = {number};")
    with closing(open_database(database)) as connection:
        assert schema_differences(connection) == []


def test_each_difference_is_found(database: Path) -> None:
    """Added, missing and changed definitions are reported by kind and name; SQLite's own tables are ignored."""
    with closing(open_database(database)) as connection:
        connection.executescript(
            "ANALYZE; CREATE TRIGGER spy AFTER INSERT ON call BEGIN SELECT 1; END; DROP INDEX call_started_at;"
            "ALTER TABLE session ADD COLUMN note; CREATE TABLE copied (row TEXT PRIMARY KEY);"
        )
        assert schema_differences(connection) == [
            SchemaDifference("missing", "index", "call_started_at"),
            SchemaDifference("added", "table", "copied"),
            SchemaDifference("changed", "table", "session"),
            SchemaDifference("added", "trigger", "spy"),
        ]
