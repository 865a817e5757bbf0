"""The SQL of the served registry's entries on PostgreSQL. The registry bounds their number and size."""

from collections.abc import Iterable
from typing import Any

import psycopg

from ..registry_entry_rows import RegistryEntryChange, RegistryEntryDeleted, RegistryEntryRow
from .pg_values import pg_text, text_of

Connection = psycopg.Connection[tuple[Any, ...]]


def write(connection: Connection, changes: Iterable[RegistryEntryChange]) -> None:
    """Stores changes, in order."""
    for change in changes:
        if isinstance(change, RegistryEntryDeleted):
            connection.execute(
                "DELETE FROM registry_entry WHERE kind = %s AND id = %s", (pg_text(change.kind), pg_text(change.id))
            )
            continue
        row = change.row
        key = (pg_text(row.kind), pg_text(row.id))
        connection.execute(
            "INSERT INTO registry_entry (kind, id, version, content, created_at, changed_at) "
            "VALUES (%s, %s, %s, %s, %s, %s)",
            (*key, row.version, row.content, row.created_at, row.changed_at),
        )
        connection.execute(
            "DELETE FROM registry_entry WHERE kind = %s AND id = %s AND version <= %s",
            (*key, row.version - change.kept),
        )


def all_entries(connection: Connection) -> list[RegistryEntryRow]:
    """Returns all versions of all entries, in the order of each entry's versions."""
    rows = connection.execute(
        "SELECT kind, id, version, content, created_at, changed_at FROM registry_entry ORDER BY kind, id, version"
    )
    return [RegistryEntryRow(text_of(kind), text_of(entry_id), *rest) for kind, entry_id, *rest in rows]
