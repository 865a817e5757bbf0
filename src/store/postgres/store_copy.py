"""Copies the whole store between a stopped SQLite database and a PostgreSQL database that no node uses.

It copies all data of the store, and the pins of sources, which are files next to a SQLite database. Sums that triggers
maintain are computed again. Times of the store's clock are converted so that their age stays the same. The first audit
chain is copied unchanged. A SQLite database has only one chain, so the rows of the other chains are appended to it and
signed again.
"""

import contextlib
import itertools
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql

from ..audit_chain import ChainSigner
from ..audit_rows import COLUMNS
from ..sqlite import chain_checkpoints, store_clock_sql
from ..sqlite.chain_writer import ChainWriter
from ..sqlite.store_schema import open_database, open_for_reading
from ..store_clock import StoreClock
from ..store_errors import StoreError
from . import pg_chain_sql, pg_pins_sql
from .copied_tables import (
    ADDED_COLUMNS,
    COPIED_TABLES,
    FORMER_NODE,
    JOURNAL_COLUMNS,
    SINGLE_ROW,
    SUMMED_COLUMNS,
    CopiedTable,
)
from .pg_connection import connect_to_postgres, reason_of, shown_address
from .pg_schema import require_schema
from .pg_values import pg_text, text_of

Connection = psycopg.Connection[tuple[Any, ...]]

_LOST_AFTER_S: Final = 30.0
_BATCH: Final = 1000


class CopiedStore(NamedTuple):
    """The numbers of copied rows."""

    rows: dict[str, int]
    """The number of rows by table, without empty tables."""
    resigned: int = 0
    """Audit rows that were signed again."""


def copy_to_postgres(source: Path, address: str, key: bytes, pins: Mapping[str, bytes]) -> CopiedStore:
    """Copies a SQLite database, whose daemon does not run, into a migrated and empty PostgreSQL database, in one
    transaction. ``pins``: the contents of the pin files, by name.

    Raises:
        StoreError: one of them cannot be used, the target is not empty, or nodes run on it.
    """
    place = shown_address(address)
    with contextlib.closing(open_for_reading(source)) as sqlite, _opened(address) as postgres:
        sqlite.execute("BEGIN")
        try:
            with postgres.transaction():
                _require_unused(postgres, place)
                _require_empty(postgres, place)
                shift = _now(postgres) - store_clock_sql.load(sqlite).now()
                rows = {table.name: _to_postgres(sqlite, postgres, table, shift) for table in COPIED_TABLES}
                _add_head(sqlite, postgres, key)
                pg_pins_sql.insert(postgres, pins)
        except psycopg.Error as error:
            raise StoreError(f"{place} cannot be written ({reason_of(error)})", reason_of(error)) from None
        except sqlite3.Error as error:
            raise StoreError(f"{source} cannot be read ({error})", str(error)) from None
    rows["source_pins"] = len(pins)
    return CopiedStore({name: count for name, count in rows.items() if count})


def copy_to_sqlite(
    address: str, target: Path, key: bytes, write_pins: Callable[[Mapping[str, bytes]], None]
) -> CopiedStore:
    """Copies a PostgreSQL database that no node uses into a new SQLite database. ``write_pins`` gets the contents of
    the pin files, by name; if it raises, the database is not created.

    Raises:
        StoreError: one of them cannot be used, the target exists, or nodes run.
    """
    if target.exists():
        raise StoreError(f"{target} exists: move it away, or copy into another state folder", "the target exists")
    place = shown_address(address)
    unfinished = target.with_name(f"{target.name}.copy")
    unfinished.unlink(missing_ok=True)
    try:
        with (
            contextlib.closing(open_database(unfinished)) as sqlite,
            _opened(address) as postgres,
            postgres.transaction(),
        ):
            _require_unused(postgres, place)
            clock = StoreClock(_now(postgres))
            sqlite.execute("BEGIN")
            rows = {table.name: _to_sqlite(postgres, sqlite, table) for table in COPIED_TABLES}
            _write_head(postgres, sqlite)
            pins = pg_pins_sql.all_pins(postgres)
            store_clock_sql.save(sqlite, clock)
            sqlite.execute("COMMIT")
            resigned = _sign_other_chains(postgres, sqlite, key)
            sqlite.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except psycopg.Error as error:
        raise StoreError(f"{place} cannot be read ({reason_of(error)})", reason_of(error)) from None
    except sqlite3.Error as error:
        raise StoreError(f"{target} cannot be written ({error})", str(error)) from None
    write_pins(pins)
    for suffix in ("-wal", "-shm"):
        unfinished.with_name(unfinished.name + suffix).unlink(missing_ok=True)
    unfinished.replace(target)
    rows["call"] += resigned
    rows["source_pins"] = len(pins)
    return CopiedStore({name: count for name, count in rows.items() if count}, resigned)


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _opened(address: str) -> Iterator[Connection]:
    with connect_to_postgres(address, name="toold store copy", lost_after_s=_LOST_AFTER_S) as connection:
        require_schema(connection, address)
        yield connection


def _now(connection: Connection) -> float:
    (now,) = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone() or (0.0,)
    return float(now)


def _require_unused(connection: Connection, place: str) -> None:
    """Prevents nodes from starting until the transaction ends."""
    connection.execute("LOCK TABLE node IN ACCESS EXCLUSIVE MODE")
    names = connection.execute(
        "SELECT name FROM node WHERE state <> 'dead' AND until > clock_timestamp() ORDER BY name"
    ).fetchall()
    if names:
        running = ", ".join(name for (name,) in names)
        raise StoreError(f"nodes run on {place}: {running}; stop them first", "nodes are running")


def _require_empty(connection: Connection, place: str) -> None:
    for table in ("node", "chain", "source_pins", *(table.name for table in COPIED_TABLES)):
        found = connection.execute(sql.SQL("SELECT FROM {} LIMIT 1").format(sql.Identifier(table))).fetchone()
        if found is not None:
            raise StoreError(f"{place} is not empty ({table} has rows): copy into a new database", "not empty")


def _types(connection: Connection, table: str) -> dict[str, str]:
    rows = connection.execute(
        "SELECT column_name, data_type FROM information_schema.columns "
        "WHERE table_schema = 'toold' AND table_name = %s",
        (table,),
    )
    return dict(rows.fetchall())


def _to_postgres(sqlite: sqlite3.Connection, postgres: Connection, table: CopiedTable, shift: float) -> int:
    types = _types(postgres, table.name)
    added = ADDED_COLUMNS.get(table.name)
    columns = (*table.columns, *([added[0]] if added else []), *(["chain"] if table.chained else []))
    expressions = (*table.columns, *([added[1]] if added else []), *(["0"] if table.chained else []))
    rows = sqlite.execute(f"SELECT {', '.join(expressions)} FROM {table.source}")  # noqa: S608 - our own names
    shifts = [shift if name in table.clock else 0.0 for name in columns]
    kinds = [types[name] for name in columns]
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(table.name), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    count = 0
    with postgres.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            values = zip(row, kinds, shifts, strict=True)
            copy.write_row([_for_postgres(value, kind, by) for value, kind, by in values])
            count += 1
    if count and "number" in types and not table.chained and table.name != "turn":
        _continue_numbers(postgres, table.name)
    return count


def _for_postgres(value: Any, kind: str, shift: float) -> Any:
    if value is None:
        return None
    match kind:
        case "boolean":
            return bool(value)
        case "double precision":
            return float(value) + shift
        case "bytea":
            return value if isinstance(value, bytes) else str(value).encode()
        case "text":
            return pg_text(value if isinstance(value, str) else bytes(value).decode())
        case _:
            return value


def _continue_numbers(connection: Connection, table: str) -> None:
    """Sets the next number that the database assigns to the one after the copied numbers."""
    sequence = connection.execute("SELECT pg_get_serial_sequence(%s, 'number')", (f"toold.{table}",)).fetchone()
    if sequence is not None and sequence[0] is not None:
        connection.execute(
            sql.SQL("SELECT setval(%s, (SELECT max(number) FROM {}))").format(sql.Identifier(table)), (sequence[0],)
        )


def _add_head(sqlite: sqlite3.Connection, postgres: Connection, key: bytes) -> None:
    """Adds the chain with its head, and a dead node to which the unfinished calls belong."""
    head = chain_checkpoints.head(sqlite)
    if head is not None:
        postgres.execute(
            "INSERT INTO chain (number, chain, last_seq, last_mac, checkpoints, at, closed, mac, stored) "
            "SELECT 0, %s, %s, %s, %s, %s, %s, %s, (SELECT coalesce(sum(bytes), 0) FROM call)",
            (head.chain, head.last_seq, head.last_mac, head.checkpoints, head.at, head.closed, head.mac),
        )
    name = ChainSigner(key).chain
    postgres.execute("UPDATE store SET chain = coalesce(chain, %s)", (name,))
    found = postgres.execute("SELECT chain FROM store").fetchone()
    if found is None or found[0] != name:
        raise StoreError("the database belongs to a service with another audit.key", "another audit key")
    if postgres.execute("SELECT FROM journal WHERE state = 'started' LIMIT 1").fetchone() is not None:
        postgres.execute(
            "INSERT INTO node (epoch, name, state, until, lease_s) "
            "VALUES (%s, %s, 'live', clock_timestamp() - interval '1 hour', 1)",
            (FORMER_NODE, FORMER_NODE),
        )


# --- SQLite -----------------------------------------------------------------------------------------------------------


def _to_sqlite(postgres: Connection, sqlite: sqlite3.Connection, table: CopiedTable) -> int:
    columns = table.columns
    summed = SUMMED_COLUMNS.get(table.name, "").split()
    key = columns[: len(columns) - len(summed)]
    read = ", ".join((*key, *summed) if summed else columns)
    statement = f"SELECT {read} FROM {table.name}"  # noqa: S608 - our own names
    if summed:
        statement += f" GROUP BY {', '.join(key)}" if key else " HAVING count(*) > 0"
    elif table.chained:
        statement += " WHERE chain = 0"
    with postgres.cursor(f"copy_{table.name}") as cursor:
        cursor.itersize = _BATCH
        cursor.execute(statement.encode())
        return _insert(sqlite, table, (tuple(map(_for_sqlite, row)) for row in cursor))


def _insert(sqlite: sqlite3.Connection, table: CopiedTable, rows: Iterable[tuple[Any, ...]]) -> int:
    if table.name == "journal":
        return _insert_journal(sqlite, rows)
    single = SINGLE_ROW.get(table.name)
    columns = (*table.columns, *([single[0]] if single else []))
    statement = f"INSERT OR REPLACE INTO {table.name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608 - our own names
    count = 0
    for row in rows:
        sqlite.execute(statement, (*row, *([single[1]] if single else [])))
        count += 1
    return count


def _insert_journal(sqlite: sqlite3.Connection, rows: Iterable[tuple[Any, ...]]) -> int:
    columns = JOURNAL_COLUMNS.split()[:-2]
    statement = f"INSERT INTO journal ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608 - our own names
    count = 0
    for *row, template, result in rows:
        sqlite.execute(statement, row)
        if template is not None:
            sqlite.execute("INSERT INTO template (number, audit_row) VALUES (?, ?)", (row[0], template))
        if result is not None:
            sqlite.execute("INSERT INTO result (number, result) VALUES (?, ?)", (row[0], result))
        count += 1
    return count


def _for_sqlite(value: Any) -> Any:
    if isinstance(value, str):
        return text_of(value)
    return int(value) if isinstance(value, bool) else value


def _write_head(postgres: Connection, sqlite: sqlite3.Connection) -> None:
    head = pg_chain_sql.head(postgres, 0)
    if head is not None:
        chain_checkpoints.write_head(sqlite, head)


def _sign_other_chains(postgres: Connection, sqlite: sqlite3.Connection, key: bytes) -> int:
    """Adds the rows of the other chains to the single chain, in the order in which the calls ended."""
    writer = ChainWriter(key, expects_chain=True)
    names = ", ".join(COLUMNS)
    statement = f"INSERT INTO call (seq, {names}, mac) VALUES ({', '.join('?' * (len(COLUMNS) + 2))})"  # noqa: S608 - our own names
    count = 0
    with postgres.cursor("copy_other_chains") as cursor:
        cursor.itersize = _BATCH
        cursor.execute(f"SELECT {names} FROM call WHERE chain <> 0 ORDER BY number".encode())  # noqa: S608 - our own names
        while batch := list(itertools.islice(cursor, _BATCH)):
            values: list[Sequence[Any]] = [tuple(map(_for_sqlite, row)) for row in batch]
            with writer.extending(sqlite, closed=True) as chain:
                sqlite.executemany(statement, chain.number_rows(tuple(row) for row in values))
            count += len(values)
    return count
