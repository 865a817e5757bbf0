"""The SQL of the served registry's entries. The registry bounds their number and size before it writes them."""

import sqlite3
from collections.abc import Iterable

from ..registry_entry_rows import RegistryEntryChange, RegistryEntryDeleted, RegistryEntryRow


def write(connection: sqlite3.Connection, changes: Iterable[RegistryEntryChange]) -> None:
    """Stores changes, in order."""
    for change in changes:
        if isinstance(change, RegistryEntryDeleted):
            connection.execute("DELETE FROM registry_entry WHERE kind = ? AND id = ?", change)
            continue
        row = change.row
        connection.execute("INSERT INTO registry_entry VALUES (?, ?, ?, ?, ?, ?)", row)
        connection.execute(
            "DELETE FROM registry_entry WHERE kind = ? AND id = ? AND version <= ?",
            (row.kind, row.id, row.version - change.kept),
        )


def all_entries(connection: sqlite3.Connection) -> list[RegistryEntryRow]:
    """Returns all versions of all entries, in the order of each entry's versions."""
    rows = connection.execute(
        "SELECT kind, id, version, content, created_at, changed_at FROM registry_entry ORDER BY kind, id, version"
    )
    return [RegistryEntryRow(*row) for row in rows]
