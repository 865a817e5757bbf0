"""The SQL of the credentials of users. Each function takes a few milliseconds, within the caller's transaction."""

import sqlite3

import msgspec

from ..store_limits import RESEALED_AT_ONCE
from ..user_credential_rows import UserCredentialDeleted, UserCredentialRow


def write(connection: sqlite3.Connection, entry: UserCredentialRow | UserCredentialDeleted) -> None:
    """Stores a change."""
    if isinstance(entry, UserCredentialDeleted):
        connection.execute("DELETE FROM user_credential WHERE principal = ? AND service = ?", entry)
        return
    fields = msgspec.json.encode(entry.fields).decode()
    connection.execute(
        "INSERT OR REPLACE INTO user_credential VALUES (?, ?, ?, ?, ?)",
        (entry.principal, entry.service, fields, entry.changed_at, entry.sealed),
    )


def of_principal(connection: sqlite3.Connection, principal: str) -> list[UserCredentialRow]:
    """Returns the credentials of a principal, by service."""
    rows = connection.execute("SELECT * FROM user_credential WHERE principal = ? ORDER BY service", (principal,))
    return [_row(row) for row in rows]


def find(connection: sqlite3.Connection, principal: str, service: str) -> UserCredentialRow | None:
    """Returns a principal's credential for a service."""
    row = connection.execute(
        "SELECT * FROM user_credential WHERE principal = ? AND service = ?", (principal, service)
    ).fetchone()
    return None if row is None else _row(row)


def count(connection: sqlite3.Connection) -> int:
    """Returns the number of credentials of all principals."""
    (number,) = connection.execute("SELECT count(*) FROM user_credential").fetchone()
    return int(number)


def after(connection: sqlite3.Connection, principal: str, service: str) -> list[UserCredentialRow]:
    """Returns the next ``RESEALED_AT_ONCE`` credentials after this one, of all principals, in order."""
    rows = connection.execute(
        "SELECT * FROM user_credential WHERE (principal, service) > (?, ?) ORDER BY principal, service LIMIT ?",
        (principal, service, RESEALED_AT_ONCE),
    )
    return [_row(row) for row in rows]


def _row(row: tuple[str, str, str, float, bytes]) -> UserCredentialRow:
    principal, service, fields, changed_at, sealed = row
    return UserCredentialRow(principal, service, msgspec.json.decode(fields, type=tuple[str, ...]), changed_at, sealed)
