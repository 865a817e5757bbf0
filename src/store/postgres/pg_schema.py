"""Checks whether a node can use the schema of a PostgreSQL database, and migrates the schema.

A migration is a command (``toold store migrate``) and never part of a node's start, because changes of tables by two
nodes during live traffic would deadlock. Nodes of two adjacent versions run side by side during an upgrade: a migration
states the oldest schema whose nodes can use the new one.

Exceptions::

    StoreError                   the database cannot be used
    ├── UnmigratedError          it has no schema, or an older one
    ├── NodesTooOldError         some running nodes cannot use the new schema
    └── NewerPostgresSchemaError its schema is too new for this toold
"""

from collections.abc import Sequence
from importlib import resources
from typing import Any, Final, NamedTuple

import psycopg

from ..store_errors import StoreError
from .pg_connection import SCHEMA_NAME, connect_to_postgres, reason_of, shown_address

Connection = psycopg.Connection[tuple[Any, ...]]

SERVICE: Final = "toold"
_LOCK: Final = 0x746F6F6C64
"""The key of the advisory lock of migrations: "toold" in ASCII."""
_LOST_AFTER_S: Final = 30.0
_NODES_NAME_SCHEMA: Final = 3
"""Since this schema, the row of a node has the newest schema that the node knows."""
_UNNAMED_SCHEMA: Final = 2
"""The newest schema that a node can know if its row does not state one."""


class PostgresStep(NamedTuple):
    """One migration: step n migrates schema n-1 to schema n."""

    script: str
    readable_from: int
    """The oldest schema whose nodes can use the new one."""


class UnmigratedError(StoreError):
    """The database has no schema of toold, or an older one."""


class NewerPostgresSchemaError(StoreError):
    """A newer toold has migrated the database."""


class NodesTooOldError(StoreError):
    """Nodes run that could not use the new schema."""


class StoredSchema(NamedTuple):
    """The state of a database's schema."""

    version: int
    """0: none."""
    readable_from: int
    chain: str | None
    """The name of the audit chain's key; None before the first node."""


def _shipped_steps() -> tuple[PostgresStep, ...]:
    """Reads pg_schema_1.sql, pg_schema_2.sql, …; a first line ``-- readable from: N`` states the oldest schema whose
    nodes can use the new one.
    """
    directory = resources.files(__package__)
    names = sorted(entry.name for entry in directory.iterdir() if entry.name.startswith("pg_schema_"))
    steps = []
    for number in range(1, sum(name.endswith(".sql") for name in names) + 1):
        script = (directory / f"pg_schema_{number}.sql").read_text(encoding="utf-8")
        first, _, _ = script.partition("\n")
        prefix = "-- readable from: "
        steps.append(PostgresStep(script, int(first.removeprefix(prefix)) if first.startswith(prefix) else number))
    return tuple(steps)


POSTGRES_STEPS: Final = _shipped_steps()
POSTGRES_SCHEMA: Final = len(POSTGRES_STEPS)
"""The schema that this version of toold creates."""


def stored_schema(connection: Connection) -> StoredSchema:
    """Returns the schema of a database.

    Raises:
        StoreError: it has a schema ``toold`` that belongs to another program.
        psycopg.Error: it cannot be read.
    """
    tables = connection.execute(
        "SELECT to_regclass(%s) IS NOT NULL, EXISTS "
        "(SELECT 1 FROM pg_class JOIN pg_namespace AS named ON named.oid = relnamespace WHERE nspname = %s)",
        (f"{SCHEMA_NAME}.store", SCHEMA_NAME),
    ).fetchone()
    marked, used = tables or (False, False)
    if not marked and not used:
        return StoredSchema(0, 0, None)
    try:
        row = None
        if marked:
            row = connection.execute("SELECT service, version, readable_from, chain FROM toold.store").fetchone()
    except psycopg.errors.UndefinedColumn:
        row = None
    if row is None or row[0] != SERVICE:
        raise StoreError(
            f"the database has a schema named {SCHEMA_NAME} that belongs to another program; use another database",
            "the database belongs to another program",
        )
    return StoredSchema(int(row[1]), int(row[2]), row[3])


def require_schema(connection: Connection, address: str, known: int = POSTGRES_SCHEMA) -> StoredSchema:
    """Returns the schema if this toold's nodes can use it. Changes nothing.

    Raises:
        UnmigratedError: the database has no schema, or an older one.
        NewerPostgresSchemaError: the database has a newer one that this toold cannot use.
        StoreError: it belongs to another program, or this user may not read it.
    """
    place = shown_address(address)
    try:
        stored = stored_schema(connection)
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreError(
            f"the user has no rights on the tables of {place} ({reason_of(error)}); "
            "grant them, or connect as the user that ran `toold store migrate`",
            "no rights on the tables of the database",
        ) from None
    if stored.version < known:
        found = f"schema {stored.version}, but needs schema {known}" if stored.version else "no tables yet"
        raise UnmigratedError(
            f"the database {place} has {found}: run `toold store migrate` once; nodes of the previous "
            "version can keep running",
            "the database is not migrated",
        )
    if stored.readable_from > known:
        raise NewerPostgresSchemaError(
            f"the database {place} has schema {stored.version}, which needs a toold that knows schema "
            f"{stored.readable_from}, but this one knows up to {known}: install the newer toold",
            "a newer toold has migrated the database",
        )
    return stored


def migrate_postgres(address: str, steps: Sequence[PostgresStep] = POSTGRES_STEPS) -> tuple[int, int]:
    """Creates or migrates the schema, all steps in one transaction; returns the schema before and after it.

    One migration runs at a time: another one waits for it, and then finds nothing to do.

    Raises:
        NewerPostgresSchemaError: a newer toold has migrated the database.
        NodesTooOldError: some running nodes cannot use the new schema.
        StoreError: it cannot be reached, the user has no rights to create tables, or it belongs to another program.
    """
    place = shown_address(address)
    with connect_to_postgres(address, name="toold store migrate", lost_after_s=_LOST_AFTER_S) as connection:
        try:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                return _migrate(connection, steps, place)
        except psycopg.errors.InsufficientPrivilege as error:
            raise StoreError(
                f"the user may not create the tables in {place} ({reason_of(error)}); "
                f"run `GRANT CREATE ON DATABASE ... TO ...` as an administrator, or migrate as another user",
                "no rights to create tables",
            ) from None
        except psycopg.Error as error:
            raise StoreError(
                f"the migration of {place} failed and nothing was changed ({reason_of(error)})", reason_of(error)
            ) from None


def _migrate(connection: Connection, steps: Sequence[PostgresStep], place: str) -> tuple[int, int]:
    before = stored_schema(connection).version
    if before > len(steps):
        raise NewerPostgresSchemaError(
            f"the database {place} has schema {before}, but this toold knows up to {len(steps)}: "
            "install the newer toold",
            "a newer toold has migrated the database",
        )
    if before == len(steps):
        return before, before
    if before:
        _require_no_older_nodes(connection, before, len(steps), steps[-1].readable_from)
    else:
        connection.execute("CREATE SCHEMA IF NOT EXISTS toold")
    for step in steps[before:]:
        # Without parameters, the text may have several statements.
        connection.execute(step.script.encode(), prepare=False)
    if not before:
        connection.execute("INSERT INTO store (version, readable_from) VALUES (%s, %s)", (0, 0))
    newest = steps[-1]
    connection.execute("UPDATE store SET version = %s, readable_from = %s", (len(steps), newest.readable_from))
    return before, len(steps)


def _require_no_older_nodes(connection: Connection, before: int, after: int, readable_from: int) -> None:
    """
    Raises:
        NodesTooOldError: some running nodes cannot use the schema ``after``.
    """
    known = f"coalesce(schema, {_UNNAMED_SCHEMA})" if before >= _NODES_NAME_SCHEMA else str(before)
    query = (
        f"SELECT coalesce(nullif(name, ''), epoch) FROM node WHERE state <> 'dead' AND until > clock_timestamp() "
        f"AND {known} < %s ORDER BY 1"
    )
    names = [name for (name,) in connection.execute(query.encode(), (readable_from,)).fetchall()]
    if names:
        raise NodesTooOldError(
            f"these running nodes cannot use schema {after}: {', '.join(names)}; stop them, or upgrade them first to a "
            f"toold that knows schema {readable_from}. Nothing was changed",
            "nodes are too old for the new schema",
        )
