"""The SQL of the owners of vendor files on PostgreSQL. Each function takes a few milliseconds."""

from collections.abc import Iterable
from typing import Any

import psycopg

from ..store_limits import MAX_OWNERS
from ..vendor_file_rows import VendorFileDeleted, VendorFileUploaded
from .pg_values import pg_text, text_of

Connection = psycopg.Connection[tuple[Any, ...]]


def write(connection: Connection, changes: Iterable[VendorFileUploaded | VendorFileDeleted]) -> None:
    """Stores the owners of uploaded files, and deletes the records of deleted files. The last upload of an id
    counts."""
    for change in changes:
        key = (pg_text(change.provider), pg_text(change.file_id))
        if isinstance(change, VendorFileUploaded):
            connection.execute(
                "INSERT INTO vendor_file (provider, file_id, principal, uploaded_at) VALUES (%s, %s, %s, %s) "
                "ON CONFLICT (provider, file_id) DO UPDATE SET principal = excluded.principal, "
                "uploaded_at = excluded.uploaded_at",
                (*key, pg_text(change.principal), change.at),
            )
        else:
            connection.execute("DELETE FROM vendor_file WHERE provider = %s AND file_id = %s", key)


def owned(connection: Connection, provider: str, principal: str | None) -> frozenset[str]:
    """Returns the ids of a principal's files, or of all principals' files."""
    rows = connection.execute(
        "SELECT file_id FROM vendor_file WHERE provider = %(provider)s "
        "AND (%(principal)s::text IS NULL OR principal = %(principal)s)",
        {"provider": pg_text(provider), "principal": None if principal is None else pg_text(principal)},
    )
    return frozenset(text_of(file_id) for (file_id,) in rows)


def delete_excess(connection: Connection) -> None:
    """Deletes the oldest records beyond ``MAX_OWNERS``."""
    connection.execute(
        "DELETE FROM vendor_file WHERE (provider, file_id) IN "
        "(SELECT provider, file_id FROM vendor_file ORDER BY uploaded_at DESC OFFSET %s)",
        (MAX_OWNERS,),
    )
