"""Read-only access to the audit trail in PostgreSQL from another process, with or without running nodes."""

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

import psycopg

from ..audit_chain import ChainTrail
from ..audit_rows import COLUMNS
from ..chain_binding import ChainEnd
from ..schema_difference import SchemaDifference
from ..store_errors import StoreError
from ..store_rows import CallRow, CallTotals, ChainedRow
from . import pg_audit_sql, pg_chain_sql, pg_schema_check
from .pg_audit_sql import stored_row, stored_values
from .pg_connection import connect_to_postgres, reason_of, shown_address
from .pg_schema import require_schema

Connection = psycopg.Connection[tuple[Any, ...]]

_LOST_AFTER_S: Final = 30.0
_FETCHED_ROWS: Final = 1000
"""The number of rows per fetch of a long read."""
_cursor_numbers = itertools.count()


class PostgresArchive:
    """The audit trail of all nodes. Created by ``open_postgres_archive``."""

    def __init__(self, connection: Connection, address: str, place: str) -> None:
        self._connection = connection
        self._address = address
        self.place: Final = place
        """The address of the database, without a password."""

    def recent(self, limit: int) -> list[CallRow]:
        """Returns the calls that ended last, newest first."""
        return pg_audit_sql.recent(self._connection, limit)

    def calls_since(self, started_at: float) -> Iterator[ChainedRow]:
        """Yields all calls that started at or after a Unix time, roughly in the order in which they ended."""
        rows = self._rows(
            f"SELECT chain, seq, mac, {', '.join(COLUMNS)} FROM call WHERE started_at >= %s ORDER BY number",  # noqa: S608 - our own names
            (started_at,),
        )
        return (ChainedRow(chain=chain, seq=seq, mac=mac, call=stored_row(fields)) for chain, seq, mac, *fields in rows)

    def totals(self) -> CallTotals:
        """Returns the sums over all calls ever recorded."""
        return pg_audit_sql.totals(self._connection)

    def chains(self) -> list[int]:
        """Returns the numbers of all chains."""
        return pg_chain_sql.numbers(self._connection)

    def trail(self, chain: int) -> ChainTrail:
        """Returns the head and the checkpoints of a chain."""
        return pg_chain_sql.trail(self._connection, chain)

    def chained_rows(self, chain: int) -> Iterator[tuple[int, Sequence[Any], bytes | None]]:
        """Yields all calls of a chain in order: seq, values as ``canonical`` takes them, mac."""
        rows = self._rows(
            f"SELECT seq, mac, {', '.join(COLUMNS)} FROM call WHERE chain = %s ORDER BY seq",  # noqa: S608 - our own names
            (chain,),
        )
        return ((seq, stored_values(values), mac) for seq, mac, *values in rows)

    def binding(self, chain: int) -> list[ChainEnd] | None:
        """Returns the ends of the other chains that a chain has recorded, unverified; None if it has recorded none."""
        return pg_chain_sql.binding(self._connection, chain)

    def mac_at(self, chain: int, seq: int) -> bytes | None:
        """Returns the mac of a row; None if there is no such row."""
        return pg_chain_sql.mac_at(self._connection, chain, seq)

    def schema_differences(self) -> list[SchemaDifference] | None:
        """Returns the definitions in the database that differ from the schema. For the comparison, it creates the
        schema and rolls it back. Returns None if this user may not create it.
        """
        with connect_to_postgres(self._address, name="toold audit", lost_after_s=_LOST_AFTER_S) as connection:
            try:
                return pg_schema_check.schema_differences(connection)
            except psycopg.errors.InsufficientPrivilege:
                return None

    def _rows(self, statement: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """Reads rows piece by piece, because they may not fit into memory."""
        with self._connection.cursor(f"rows_{next(_cursor_numbers)}") as cursor:
            cursor.itersize = _FETCHED_ROWS
            cursor.execute(statement.encode(), values)
            yield from cursor


@contextlib.contextmanager
def open_postgres_archive(address: str) -> Iterator[PostgresArchive]:
    """Opens a database that this toold can use.

    Raises:
        StoreError: it cannot be reached or read, or has another schema; also raised within the block.
    """
    place = shown_address(address)
    with connect_to_postgres(address, name="toold audit", lost_after_s=_LOST_AFTER_S) as connection:
        require_schema(connection, address)
        try:
            with connection.transaction():  # all reads see one snapshot
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                yield PostgresArchive(connection, address, place)
        except psycopg.Error as error:
            raise StoreError(f"{place} cannot be read ({reason_of(error)})", reason_of(error)) from None
