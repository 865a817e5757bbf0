"""Opens the default store: an SQLite file."""

from pathlib import Path

from ..group_committer import Content
from ..retention import Retention
from ..store import Store
from ..store_writer import StoreWriter
from .committer import SqliteCommitter
from .sqlite_reader import SqliteReader


def open_sqlite_store(
    path: Path,
    *,
    content: Content,
    retention: Retention,
    key: bytes,
    expects_chain: bool = False,
    copy_conversations: bool = False,
) -> Store:
    """Opens the store on one SQLite file, which is created or migrated if needed.

    ``content`` reduces the arguments of calls for the audit rows. ``key`` (``KEY_BYTES`` long) signs the audit chain;
    ``expects_chain``: the key signed a chain before this start. ``copy_conversations``: conversations are copied to
    Supabase.

    Raises:
        NewerSchemaError: a newer toold wrote the file.
        StoreError: the file cannot be created, read or written. A full disk alone raises no error: ``Store.problem`` is
        set until the disk has space.
    """
    committer = SqliteCommitter(path, content=content, retention=retention, key=key, expects_chain=expects_chain)
    writer = StoreWriter(committer)
    return Store(writer, SqliteReader(path, writer.flush), path=path, copy_conversations=copy_conversations)
