"""The database read from outside, beside a daemon that runs or does not: nothing is changed, nobody waits."""

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from . import audit_sql, chain_checkpoints
from .audit_chain import ChainTrail
from .store_rows import CallRow, CallTotals, ChainedRow
from .store_schema import SCHEMA, StoreError, open_for_reading, schema_version


class Archive:
    """What a database holds. ``open_archive`` makes it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def recent(self, limit: int) -> list[CallRow]:
        """The calls that ended last, the last one first."""
        return audit_sql.recent(self._connection, limit)

    def since(self, started_at: float) -> Iterator[ChainedRow]:
        """All calls that started at a Unix time or later, in the order in which they ended."""
        found = self._connection.execute(
            f"SELECT seq, mac, {', '.join(audit_sql.COLUMNS)} FROM call WHERE started_at >= ? ORDER BY seq",  # noqa: S608 - our own names
            (started_at,),
        )
        return (ChainedRow(seq=seq, mac=mac, call=audit_sql.row(fields)) for seq, mac, *fields in found)

    def trail(self) -> ChainTrail:
        """What is noted of the audit's chain."""
        return chain_checkpoints.trail(self._connection)

    def chained(self) -> Iterator[tuple[int, Sequence[Any], bytes | None]]:
        """All calls in the order of the chain: seq, values as ``canonical`` takes them, mac."""
        found = self._connection.execute(
            f"SELECT seq, mac, {', '.join(audit_sql.COLUMNS)} FROM call ORDER BY seq"  # noqa: S608 - our own names
        )
        return ((seq, values, mac) for seq, mac, *values in found)

    def totals(self) -> CallTotals:
        """The sums of all calls ever recorded."""
        return audit_sql.totals(self._connection)


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Read a database of this toold's schema.

    Raises:
        StoreError: there is none, it has another schema, or it cannot be read; from within the block too.
    """
    if not path.exists():
        raise StoreError(f"there is no database at {path}; a daemon's first start makes one", "there is no database")
    found = schema_version(path)
    if found != SCHEMA:
        remedy = "install the newer toold again" if found > SCHEMA else "start this toold's daemon once"
        raise StoreError(f"{path} has schema {found}, and this toold reads {SCHEMA}: {remedy}", "another schema")
    try:
        with contextlib.closing(open_for_reading(path)) as connection:
            connection.execute("BEGIN")  # all that is read is of one moment
            yield Archive(connection)
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be read ({error})", str(error)) from None
