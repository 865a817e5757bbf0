"""Opening the database: its file, its settings, and the steps from an older schema to this one.

Exceptions::

    StoreError               the database cannot be used
    └── NewerSchemaError     a newer toold wrote it
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Final

from .database_files import close_to_others

_SETTINGS = """
PRAGMA auto_vacuum = INCREMENTAL;         -- before the first table; lets the file shrink where retention empties it
PRAGMA journal_mode = WAL;                -- readers and the writer do not wait for each other
PRAGMA synchronous = NORMAL;              -- a crash of the process loses nothing; a power cut may lose the last group
PRAGMA journal_size_limit = 16777216;
"""


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All that is done within the block, or nothing where it raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.rollback()
        raise


def sync_commits(connection: sqlite3.Connection, each: bool) -> None:
    """Have each commit to come synced to the disk, which costs a wait for it; or none, as ``_SETTINGS`` has it.

    The journal's are: undone by a power cut, a call that had an effect would be unknown, and run a second time.
    """
    connection.execute(f"PRAGMA synchronous = {'FULL' if each else 'NORMAL'}")


class StoreError(Exception):
    """The database cannot be used; the message says why and what to do."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason
        """Why, in SQLite's or the system's words: without paths, fit for callers' eyes."""


class NewerSchemaError(StoreError):
    """A newer toold wrote this database."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"{path} has schema {found}, and this toold knows up to {known}: install the newer toold again, "
            f"or move the file away, and audit.key with it, to start with an empty one",
            "a newer toold wrote the database",
        )


def _shipped_steps() -> tuple[str, ...]:
    """schema_1.sql, schema_2.sql, …: step n leads from schema n-1 to schema n."""
    directory = resources.files(__package__)
    names = [entry.name for entry in directory.iterdir() if entry.name.startswith("schema_")]
    count = sum(name.endswith(".sql") for name in names)
    return tuple((directory / f"schema_{number}.sql").read_text(encoding="utf-8") for number in range(1, count + 1))


STEPS: Final = _shipped_steps()
SCHEMA: Final = len(STEPS)
"""The schema that this toold writes."""
MEND_DAMAGE: Final = (
    "stop the daemon and put back a copy that is whole, or move the file away, and audit.key with it, to start with an "
    "empty one"
)
"""What to do with a damaged database."""
_PRIMARY: Final = 0xFF
"""The part of an SQLite error's code that says what it is; the rest says more of it."""
_STEPS_BETWEEN_LOOKS: Final = 10_000
"""Of SQLite's machine between two looks at the clock: some tenths of a millisecond."""


def open_database(path: Path, steps: Sequence[str] = STEPS) -> sqlite3.Connection:
    """Open the database for its one writer, made (mode 0600) or brought to the newest schema where needed.

    Where the files are open to others they are closed to them. Before an older schema is changed, the file is copied to
    ``<name>.v<schema>.bak`` beside it. The connection may move to another thread; transactions are the caller's to
    begin and end.

    Raises:
        NewerSchemaError: the file has a schema that ``steps`` do not reach.
        StoreError: the file cannot be read or written, or is no SQLite database.
    """
    try:
        # Only where it is not there: whoever closes a file gives up all locks of its process on it (POSIX), those of
        # SQLite's other connections too, and the next program that opens the database would take it for abandoned.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise unusable(path, error) from None
    try:
        _prepare(connection, path, steps)
        close_to_others(path)  # what is refused stays as it is
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.Error | OSError):
            raise unusable(path, error) from None
        raise
    return connection


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Open an existing database to read it, on one thread at a time.

    Raises:
        sqlite3.Error: there is none, or it cannot be read.
    """
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)


def schema_version(path: Path) -> int:
    """The schema of an existing database; 0 for one that is empty. Changes nothing.

    Raises:
        StoreError: it cannot be read, or is no SQLite database.
    """
    try:
        with contextlib.closing(open_for_reading(path)) as connection:
            return _version(connection)
    except sqlite3.Error as error:
        raise unusable(path, error) from None


def is_damaged(error: sqlite3.Error) -> bool:
    """Whether SQLite found that a page of the file is not what it wrote."""
    return _primary(error) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def find_damage(path: Path, *, within_s: float) -> str | None:
    """The first thing that is wrong with the pages of an existing database, in SQLite's words; None where nothing is
    found within so many seconds. Changes nothing.

    Raises:
        StoreError: it cannot be read for another reason.
    """
    deadline = time.monotonic() + within_s
    try:
        with contextlib.closing(open_for_reading(path)) as connection:
            connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_LOOKS)
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        if is_damaged(error):
            return str(error)
        if _primary(error) == sqlite3.SQLITE_INTERRUPT:
            return None
        raise unusable(path, error) from None
    return None if found == "ok" else " ".join(found.split())


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _prepare(connection: sqlite3.Connection, path: Path, steps: Sequence[str]) -> None:
    found = _version(connection)
    if found > len(steps):
        raise NewerSchemaError(path, found, len(steps))
    connection.executescript(_SETTINGS)
    if 0 < found < len(steps):
        _back_up(connection, path.with_name(f"{path.name}.v{found}.bak"))
    for number in range(found + 1, len(steps) + 1):
        try:
            connection.executescript(f"BEGIN; {steps[number - 1]}; PRAGMA user_version = {number}; COMMIT;")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.rollback()
            raise


def _back_up(connection: sqlite3.Connection, target: Path) -> None:
    unfinished = target.with_name(f"{target.name}.new")
    unfinished.unlink(missing_ok=True)
    os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with contextlib.closing(sqlite3.connect(unfinished)) as copy:
        connection.backup(copy)
    unfinished.replace(target)


def _primary(error: BaseException) -> int:
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
    return code & _PRIMARY


def unusable(path: Path, error: sqlite3.Error | OSError) -> StoreError:
    """Why a database cannot be used, from what SQLite or the system said, and what to do."""
    reason = str(error.strerror if isinstance(error, OSError) else error)
    if isinstance(error, sqlite3.Error) and is_damaged(error):
        return StoreError(f"{path} is damaged ({reason}); {MEND_DAMAGE}", reason)
    if _primary(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        told = f"{path} is in use by another program ({reason}); end that program, or try again"
        return StoreError(told, reason)
    return StoreError(
        f"{path} cannot be used as the database ({reason}); free the disk or mend its permissions, "
        "or move the file away, and audit.key with it, to start with an empty one",
        reason,
    )
