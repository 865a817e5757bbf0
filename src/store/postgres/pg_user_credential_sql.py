"""The SQL of the credentials of users on PostgreSQL. Each function takes a few milliseconds."""

from typing import Any, Final

import msgspec
import psycopg

from ..store_limits import RESEALED_AT_ONCE
from ..user_credential_rows import UserCredentialDeleted, UserCredentialRow
from .pg_values import pg_text, text_of

Connection = psycopg.Connection[tuple[Any, ...]]

_COLUMNS: Final = "principal, service, fields, changed_at, sealed"


def write(connection: Connection, entry: UserCredentialRow | UserCredentialDeleted) -> None:
    """Stores a change, within the caller's transaction."""
    key = (pg_text(entry.principal), pg_text(entry.service))
    if isinstance(entry, UserCredentialDeleted):
        connection.execute("DELETE FROM user_credential WHERE principal = %s AND service = %s", key)
        return
    fields = pg_text(msgspec.json.encode(entry.fields).decode())
    connection.execute(
        f"INSERT INTO user_credential ({_COLUMNS}) VALUES (%s, %s, %s, %s, %s) "
        "ON CONFLICT (principal, service) DO UPDATE SET fields = excluded.fields, changed_at = excluded.changed_at, "
        "sealed = excluded.sealed",
        (*key, fields, entry.changed_at, entry.sealed),
    )


def of_principal(connection: Connection, principal: str) -> list[UserCredentialRow]:
    """Returns the credentials of a principal, by service."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM user_credential WHERE principal = %s ORDER BY service",
        (pg_text(principal),),
    )
    return [_row(row) for row in rows]


def find(connection: Connection, principal: str, service: str) -> UserCredentialRow | None:
    """Returns a principal's credential for a service."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM user_credential WHERE principal = %s AND service = %s",
        (pg_text(principal), pg_text(service)),
    ).fetchone()
    return None if row is None else _row(row)


def count(connection: Connection) -> int:
    """Returns the number of credentials of all principals."""
    (number,) = connection.execute("SELECT count(*) FROM user_credential").fetchone() or (0,)
    return int(number)


def after(connection: Connection, principal: str, service: str) -> list[UserCredentialRow]:
    """Returns the next ``RESEALED_AT_ONCE`` credentials after this one, of all principals, in order."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM user_credential WHERE (principal, service) > (%s, %s) "
        "ORDER BY principal, service LIMIT %s",
        (pg_text(principal), pg_text(service), RESEALED_AT_ONCE),
    )
    return [_row(row) for row in rows]


def _row(row: tuple[Any, ...]) -> UserCredentialRow:
    principal, service, fields, changed_at, sealed = row
    names = msgspec.json.decode(text_of(fields), type=tuple[str, ...])
    return UserCredentialRow(text_of(principal), text_of(service), names, changed_at, sealed)
