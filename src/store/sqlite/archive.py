"""Read-only access to the database from another process, whether a daemon is running or not."""

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..audit_chain import ChainTrail
from ..audit_rows import COLUMNS, audit_row
from ..schema_difference import SchemaDifference
from ..store_errors import StoreError
from ..store_rows import CallRow, CallTotals, ChainedRow
from . import audit_sql, chain_checkpoints
from .schema_check import schema_differences
from .store_schema import SCHEMA, open_for_reading, schema_version


class Archive:
    """The contents of a database. Created by ``open_archive``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def recent(self, limit: int) -> list[CallRow]:
        """Returns the calls that ended last, newest first."""
        return audit_sql.recent(self._connection, limit)

    def calls_since(self, started_at: float) -> Iterator[ChainedRow]:
        """Yields all calls that started at or after a Unix time, in the order in which they ended."""
        rows = self._connection.execute(
            f"SELECT seq, mac, {', '.join(COLUMNS)} FROM call WHERE started_at >= ? ORDER BY seq",  # noqa: S608 - our own names
            (started_at,),
        )
        return (ChainedRow(seq=seq, mac=mac, call=audit_row(fields)) for seq, mac, *fields in rows)

    def trail(self) -> ChainTrail:
        """Returns the head and the checkpoints of the audit chain."""
        return chain_checkpoints.trail(self._connection)

    def chained_rows(self) -> Iterator[tuple[int, Sequence[Any], bytes | None]]:
        """Yields all calls in the order of the chain: seq, values as ``canonical`` takes them, mac."""
        rows = self._connection.execute(
            f"SELECT seq, mac, {', '.join(COLUMNS)} FROM call ORDER BY seq"  # noqa: S608 - our own names
        )
        return ((seq, values, mac) for seq, mac, *values in rows)

    def schema_differences(self) -> list[SchemaDifference]:
        """Returns the definitions, such as triggers, that differ from this toold's schema."""
        return schema_differences(self._connection)

    def totals(self) -> CallTotals:
        """Returns the sums over all calls ever recorded."""
        return audit_sql.totals(self._connection)


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Opens a database that has this toold's schema.

    Raises:
        StoreError: the database is missing, has another schema, or cannot be read; also raised within the block.
    """
    if not path.exists():
        raise StoreError(f"there is no database at {path}; a daemon's first start creates one", "there is no database")
    version = schema_version(path)
    if version != SCHEMA:
        remedy = "install the newer toold again" if version > SCHEMA else "start this toold's daemon once"
        raise StoreError(
            f"{path} has schema {version}, but this toold reads schema {SCHEMA}: {remedy}", "another schema"
        )
    try:
        with contextlib.closing(open_for_reading(path)) as connection:
            connection.execute("BEGIN")  # all reads see one snapshot
            yield Archive(connection)
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be read ({error})", str(error)) from None
