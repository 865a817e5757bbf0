"""Inspects a PostgreSQL database for ``toold doctor`` and ``toold sources check``. Changes nothing."""

import statistics
import time
from typing import Any, Final, NamedTuple

import psycopg

from ..node_rows import NodeRow
from ..store_errors import StoreError
from . import pg_node_sql, pg_pins_sql
from .pg_connection import connect_to_postgres, reason_of, shown_address
from .pg_schema import StoredSchema, require_schema

Connection = psycopg.Connection[tuple[Any, ...]]

_LOST_AFTER_S: Final = 10.0
_ROUND_TRIPS: Final = 5


class PostgresInspection(NamedTuple):
    """The state of a database and of its nodes."""

    place: str
    """``host:port/name``."""
    version: str
    schema: StoredSchema
    fsync: bool
    synchronous_commit: bool
    """Whether a commit returns only once it is on the server's disk."""
    round_trip_s: float
    """The median round trip of a few statements that read no table."""
    clock_ahead_s: float
    """How far the database's clock is ahead of this machine's, with an error of at most half a round trip."""
    shares_connections: bool
    """Whether two connections of this process reached the same session, which shows a pooler in transaction mode."""
    free_connections: int
    """How many more connections the server accepts from users who are not superusers."""
    nodes: list[NodeRow]


def inspect_postgres(address: str) -> PostgresInspection:
    """Connects twice and reads the state.

    Raises:
        StoreError: the database cannot be reached, or toold cannot use it; the message says what to do.
    """
    place = shown_address(address)
    try:
        with connect_to_postgres(address, name="toold doctor", lost_after_s=_LOST_AFTER_S) as connection:
            schema = require_schema(connection, address)
            first = _backend(connection)
            with connect_to_postgres(address, name="toold doctor", lost_after_s=_LOST_AFTER_S) as second:
                shares = _backend(second) == first
            round_trip_s, ahead_s = _measure(connection)
            return PostgresInspection(
                place,
                _setting(connection, "server_version"),
                schema,
                fsync=_setting(connection, "fsync") == "on",
                synchronous_commit=_setting(connection, "synchronous_commit") != "off",
                round_trip_s=round_trip_s,
                clock_ahead_s=ahead_s,
                shares_connections=shares,
                free_connections=_free_connections(connection),
                nodes=pg_node_sql.list_nodes(connection),
            )
    except psycopg.Error as error:
        raise StoreError(f"{place} cannot be inspected ({reason_of(error)})", reason_of(error)) from None


def read_pins(address: str) -> dict[str, bytes]:
    """Returns the pins of sources by name, as JSON.

    Raises:
        StoreError: the database cannot be reached, or toold cannot use it; the message says what to do.
    """
    try:
        with connect_to_postgres(address, name="toold", lost_after_s=_LOST_AFTER_S) as connection:
            require_schema(connection, address)
            return pg_pins_sql.all_pins(connection)
    except psycopg.Error as error:
        raise StoreError(f"{shown_address(address)} cannot be read ({reason_of(error)})", reason_of(error)) from None


def _backend(connection: Connection) -> Any:
    return _one(connection, "SELECT pg_backend_pid()")


def _setting(connection: Connection, name: str) -> str:
    return str(_one(connection, "SELECT current_setting(%s)", name))


def _free_connections(connection: Connection) -> int:
    query = (
        "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int "
        "- (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')"
    )
    return int(_one(connection, query))


def _measure(connection: Connection) -> tuple[float, float]:
    """The median round trip, and how far the database's clock was ahead in the fastest round trip."""
    samples = []
    for _ in range(_ROUND_TRIPS):
        began, before = time.monotonic(), time.time()
        at = float(_one(connection, "SELECT extract(epoch FROM clock_timestamp())"))
        took_s = time.monotonic() - began
        samples.append((took_s, at - before - took_s / 2))
    return statistics.median(took_s for took_s, _ in samples), min(samples)[1]


def _one(connection: Connection, query: str, *parameters: object) -> Any:
    row = connection.execute(query.encode(), parameters or None).fetchone()
    return None if row is None else row[0]
