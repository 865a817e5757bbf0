"""Opens the database: its file, its settings, and the migration from older schemas.

Exceptions::

    StoreError               the database cannot be used
    └── NewerSchemaError     a newer toold wrote it
"""

import contextlib
import errno
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

from ..store_errors import StoreError
from .database_files import restrict_to_owner

_CREATION_SETTINGS = "PRAGMA auto_vacuum = INCREMENTAL;"
"""Executed before the first table is created; lets the file shrink after retention. Not executed for an existing
database: it would write, and a full disk refuses writes."""
_SETTINGS = """
PRAGMA journal_mode = WAL;                -- readers and the writer do not block each other
PRAGMA synchronous = NORMAL;              -- a process crash loses nothing; a power cut may lose the last group
PRAGMA journal_size_limit = 16777216;
"""


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commits all changes made within the block, or none if it raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.rollback()
        raise


def sync_commits(connection: sqlite3.Connection, each: bool) -> None:
    """Sets whether each later commit is synced to disk, which takes time. Initially (``_SETTINGS``), commits are not
    synced.

    Journal commits are synced: if a power cut undid one, a call that had an effect would be unknown and run again.
    """
    connection.execute(f"PRAGMA synchronous = {'FULL' if each else 'NORMAL'}")


class NewerSchemaError(StoreError):
    """A newer toold wrote this database."""

    def __init__(self, path: Path, version: int, known: int) -> None:
        super().__init__(
            f"{path} has schema {version}, but this toold supports up to schema {known}: install the newer toold "
            "again, or move the file and audit.key away to start with an empty database",
            "a newer toold wrote the database",
        )


def _shipped_steps() -> tuple[str, ...]:
    """Returns schema_1.sql, schema_2.sql, …: step n migrates schema n-1 to schema n."""
    directory = resources.files(__package__)
    names = [entry.name for entry in directory.iterdir() if entry.name.startswith("schema_")]
    count = sum(name.endswith(".sql") for name in names)
    return tuple((directory / f"schema_{number}.sql").read_text(encoding="utf-8") for number in range(1, count + 1))


STEPS: Final = _shipped_steps()
SCHEMA: Final = len(STEPS)
"""The schema that this toold writes."""
DAMAGE_REMEDY: Final = (
    "stop the daemon and restore an intact backup, or move the file and audit.key away to start with an empty database"
)
"""The remedy for a damaged database."""
_PRIMARY: Final = 0xFF
"""Masks the primary part of an extended SQLite error code."""
_STEPS_PER_CLOCK_CHECK: Final = 10_000
"""SQLite virtual machine instructions between two deadline checks: some tenths of a millisecond."""


def open_database(path: Path, steps: Sequence[str] = STEPS) -> sqlite3.Connection:
    """Opens the database for its one writer; creates it (mode 0600) or migrates it to the newest schema if needed.

    Files that other users can access are restricted to their owner. Before a migration, the file is copied to
    ``<name>.v<schema>.bak`` in the same directory. The connection may move to another thread; the caller begins and
    ends transactions.

    Raises:
        NewerSchemaError: the file has a newer schema than ``steps`` produce.
        StoreError: the file cannot be read or written, or is not an SQLite database.
    """
    try:
        # Only if it does not exist: closing a file releases all locks of the process on it (POSIX), including those of
        # other SQLite connections, and the next program that opens the database would consider it unused.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise unusable(path, error) from None
    try:
        _prepare(connection, path, steps)
        restrict_to_owner(path)  # only now: a refused database stays unchanged
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.Error | OSError):
            raise unusable(path, error) from None
        raise
    return connection


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Opens an existing database read-only, for one thread at a time.

    Raises:
        sqlite3.Error: it does not exist, or cannot be read.
    """
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)


def schema_version(path: Path) -> int:
    """Returns the schema of an existing database; 0 if it is empty. Changes nothing.

    Raises:
        StoreError: it cannot be read, or is not an SQLite database.
    """
    try:
        with contextlib.closing(open_for_reading(path)) as connection:
            return _version(connection)
    except sqlite3.Error as error:
        raise unusable(path, error) from None


def is_damaged(error: sqlite3.Error) -> bool:
    """Whether SQLite found a damaged page."""
    return _primary(error) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def is_out_of_space(error: sqlite3.Error | OSError) -> bool:
    """Whether a write failed because the disk is full, or a quota or a limit on file sizes is exceeded."""
    if isinstance(error, OSError):
        return error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
    return _primary(error) in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}


def find_damage(path: Path, *, within_s: float) -> str | None:
    """Returns the first damage that SQLite finds in the pages of an existing database; None if it finds none within
    ``within_s`` seconds. Changes nothing.

    Raises:
        StoreError: it cannot be read for another reason.
    """
    deadline = time.monotonic() + within_s
    try:
        with contextlib.closing(open_for_reading(path)) as connection:
            connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_PER_CLOCK_CHECK)
            (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        if is_damaged(error):
            return str(error)
        if _primary(error) == sqlite3.SQLITE_INTERRUPT:
            return None
        raise unusable(path, error) from None
    return None if result == "ok" else " ".join(result.split())


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _prepare(connection: sqlite3.Connection, path: Path, steps: Sequence[str]) -> None:
    version = _version(connection)
    if version > len(steps):
        raise NewerSchemaError(path, version, len(steps))
    if not version:
        connection.executescript(_CREATION_SETTINGS)
    connection.executescript(_SETTINGS)
    if not version:
        _apply(connection, _creation_script(tuple(steps)), len(steps))
    elif version < len(steps):
        _back_up(connection, path.with_name(f"{path.name}.v{version}.bak"))
        for number in range(version + 1, len(steps) + 1):
            _apply(connection, steps[number - 1], number)


def _apply(connection: sqlite3.Connection, script: str, version: int) -> None:
    try:
        connection.executescript(f"BEGIN; {script}; PRAGMA user_version = {version}; COMMIT;")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.rollback()
        raise


@cache
def _creation_script(steps: tuple[str, ...]) -> str:
    """A script that creates directly the schema to which the steps would migrate an empty database. It changes no
    table: after each change, SQLite reads the whole schema again.
    """
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        memory.executescript(";".join(steps))
        _begin, *statements, _commit = memory.iterdump()
        return "\n".join(statements)


def _back_up(connection: sqlite3.Connection, target: Path) -> None:
    unfinished = target.with_name(f"{target.name}.new")
    unfinished.unlink(missing_ok=True)
    os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        with contextlib.closing(sqlite3.connect(unfinished)) as copy:
            connection.backup(copy)
    except sqlite3.Error:
        unfinished.unlink()  # so that it does not fill the disk
        raise
    unfinished.replace(target)


def _primary(error: BaseException) -> int:
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
    return code & _PRIMARY


def unusable(path: Path, error: sqlite3.Error | OSError) -> StoreError:
    """Returns the error for a database that cannot be used: why, and what to do."""
    reason = str(error.strerror if isinstance(error, OSError) else error)
    if isinstance(error, sqlite3.Error) and is_damaged(error):
        return StoreError(f"{path} is damaged ({reason}); {DAMAGE_REMEDY}", reason)
    if _primary(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreError(f"{path} is in use by another program ({reason}); end that program, or try again", reason)
    return StoreError(
        f"{path} cannot be used as the database ({reason}); free disk space or fix its permissions, "
        "or move the file and audit.key away to start with an empty database",
        reason,
        no_space=is_out_of_space(error),
    )
