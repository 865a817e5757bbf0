"""Connects to PostgreSQL, with error messages in plain words."""

from typing import Any, Final

import psycopg
from psycopg import conninfo

from ..store_errors import StoreError

Connection = psycopg.Connection[tuple[Any, ...]]

CONNECT_TIMEOUT_S: Final = 5
"""The time limit of one attempt to connect to one host."""
OLDEST_SERVER: Final = 140000
"""PostgreSQL 14, in libpq's numbering; older versions get no security fixes."""
SCHEMA_NAME: Final = "toold"
"""The schema of the database in which all tables are, so that other tables of the database are not touched."""

_SETTINGS: Final = (
    ("search_path", SCHEMA_NAME),
    ("client_encoding", "UTF8"),
    ("timezone", "UTC"),
    # All statements find rows by a key or an index. A generic plan from a time when a table was small would later scan
    # the whole table; and planning each statement again takes as long as executing it.
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("jit", "off"),
)


def connect_to_postgres(address: str, *, name: str, lost_after_s: float, node: str = "") -> Connection:
    """Opens a connection in autocommit mode that sees toold's schema.

    ``address`` is a URL or a connection string of libpq; with several hosts, the one that accepts writes is used.
    ``name`` is shown in ``pg_stat_activity``. The connection fails if the server's machine does not answer for
    ``lost_after_s``. The connection changes the rows of sums that belong to ``node``.

    Raises:
        StoreError: the address is invalid, no server answers there, or the server refuses; the message says which, and
            never contains the password.
    """
    parameters = _parameters(address, name, lost_after_s)
    try:
        connection = psycopg.Connection.connect(**parameters, autocommit=True, prepare_threshold=0)
    except psycopg.Error as error:
        raise _refused(address, error) from None
    try:
        _prepare(connection, node, lost_after_s)
    except psycopg.Error as error:
        connection.close()
        raise _refused(address, error) from None
    except BaseException:
        connection.close()
        raise
    return connection


def shown_address(address: str) -> str:
    """Returns where a database is, without the password: ``host:port/name``."""
    try:
        found = conninfo.conninfo_to_dict(address)
    except psycopg.Error:
        return "PostgreSQL"
    host = found.get("host") or found.get("hostaddr") or "localhost"
    return f"{host}:{found.get('port') or 5432}/{found.get('dbname') or found.get('user') or ''}"


def reason_of(error: psycopg.Error) -> str:
    """Returns the server's or libpq's message on one line, without its hints."""
    message = error.diag.message_primary or str(error).strip()
    return " ".join(message.split())


def _parameters(address: str, name: str, lost_after_s: float) -> dict[str, Any]:
    try:
        given = conninfo.conninfo_to_dict(address)
    except psycopg.Error as error:
        raise StoreError(
            f"the address of the database is not valid ({reason_of(error)}); write it as "
            "postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
            "the address of the database is not valid",
        ) from None
    defaults: dict[str, Any] = {
        "application_name": name,
        "connect_timeout": CONNECT_TIMEOUT_S,
        "target_session_attrs": "read-write",
        "keepalives_idle": max(1, round(lost_after_s / 2)),
        "keepalives_interval": max(1, round(lost_after_s / 6)),
        "keepalives_count": 3,
        "tcp_user_timeout": round(lost_after_s * 1000),
    }
    return defaults | {key: value for key, value in given.items() if value is not None}


def _prepare(connection: Connection, node: str, lost_after_s: float) -> None:
    connection.prepared_max = 500
    if connection.info.server_version < OLDEST_SERVER:
        version = connection.info.parameter_status("server_version")
        reason = f"PostgreSQL {version} is too old: 14 is the oldest that works"
        raise StoreError(reason, reason)
    with connection.pipeline():
        # A node that is paused within a transaction must not keep its locks.
        idle = ("idle_in_transaction_session_timeout", f"{round(lost_after_s * 1000)}ms")
        for setting, value in (*_SETTINGS, idle, ("toold.node", node)):
            connection.execute("SELECT set_config(%s, %s, false)", (setting, value))
        encoding = connection.execute("SELECT current_setting('server_encoding')")
    row = encoding.fetchone()
    if row is not None and row[0] != "UTF8":
        reason = f"the database has the encoding {row[0]}, but needs UTF8"
        raise StoreError(f"{reason}: create it with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0", reason)


def _refused(address: str, error: psycopg.Error) -> StoreError:
    reason = reason_of(error)
    return StoreError(
        f"cannot connect to PostgreSQL at {shown_address(address)} ({reason}); check the address, the user and the "
        "password of `store`, and that the server accepts connections",
        "cannot connect to the database",
    )
