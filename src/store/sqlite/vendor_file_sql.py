"""The SQL of the owners of vendor files. Each function takes a few milliseconds."""

import sqlite3
from collections.abc import Iterable

from ..store_limits import MAX_OWNERS
from ..vendor_file_rows import VendorFileDeleted, VendorFileUploaded


def write(connection: sqlite3.Connection, changes: Iterable[VendorFileUploaded | VendorFileDeleted]) -> None:
    """Stores the owners of uploaded files, and deletes the records of deleted files. The last upload of an id
    counts."""
    for change in changes:
        if isinstance(change, VendorFileUploaded):
            connection.execute("INSERT OR REPLACE INTO vendor_file VALUES (?, ?, ?, ?)", change)
        else:
            connection.execute("DELETE FROM vendor_file WHERE provider = ? AND file_id = ?", change)


def owned(connection: sqlite3.Connection, provider: str, principal: str | None) -> frozenset[str]:
    """Returns the ids of a principal's files, or of all principals' files."""
    if principal is None:
        rows = connection.execute("SELECT file_id FROM vendor_file WHERE provider = ?", (provider,))
    else:
        rows = connection.execute(
            "SELECT file_id FROM vendor_file WHERE principal = ? AND provider = ?", (principal, provider)
        )
    return frozenset(file_id for (file_id,) in rows)


def delete_excess(connection: sqlite3.Connection) -> None:
    """Deletes the oldest records beyond ``MAX_OWNERS``."""
    connection.execute(
        "DELETE FROM vendor_file WHERE (provider, file_id) IN "
        "(SELECT provider, file_id FROM vendor_file ORDER BY uploaded_at DESC LIMIT -1 OFFSET ?)",
        (MAX_OWNERS,),
    )
