"""The database's files: their owner's alone, and at their paths as long as they are open.

Looked at by ``os.stat`` only. Whoever opens and closes one of them gives up the locks of the whole process on it.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import structlog

_log = structlog.get_logger(__name__)


def close_to_others(database: Path) -> None:
    """Take from others what they may do with the files of a database, as far as they are there and this user's.

    Raises:
        OSError: it cannot be done.
    """
    for path, status in _found(database):
        if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) & 0o077:
            path.chmod(0o600)
            _log.warning("a file of the database was open to others and is closed now", path=str(path))


class OpenedFiles:
    """The files of a database that has just been opened.

    Once they are removed or replaced SQLite goes on, with files that nobody will find again.
    """

    def __init__(self, database: Path) -> None:
        self._opened = dict(_found(database))

    def gone(self) -> Path | None:
        """The first that is not at its path any more.

        Raises:
            OSError: it cannot be told.
        """
        for path, opened in self._opened.items():
            try:
                found = path.stat()
            except FileNotFoundError:
                return path
            if not os.path.samestat(found, opened):
                return path
        return None


def _found(database: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for suffix in ("", "-wal", "-shm"):
        path = database.with_name(f"{database.name}{suffix}")
        try:
            yield path, path.stat()
        except FileNotFoundError:
            continue
