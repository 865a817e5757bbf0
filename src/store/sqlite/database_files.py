"""Checks that only the owner can read the database files, and that they are still at their paths.

Uses only ``os.stat``: opening and closing a file would release all locks of the process on it.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import structlog

_log = structlog.get_logger(__name__)


def restrict_to_owner(database: Path) -> None:
    """Sets mode 0600 on the existing files of a database that belong to this user.

    Raises:
        OSError: the mode cannot be set.
    """
    for path, status in _existing_files(database):
        if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) & 0o077:
            path.chmod(0o600)
            _log.warning("database file was accessible to other users; restricted to its owner", path=str(path))


class OpenedFiles:
    """The files of a database that has just been opened.

    If they are removed or replaced, SQLite continues with files that have no path.
    """

    def __init__(self, database: Path) -> None:
        self._opened = dict(_existing_files(database))

    def missing(self) -> Path | None:
        """Returns the first file that is no longer at its path.

        Raises:
            OSError: the check fails.
        """
        for path, opened in self._opened.items():
            try:
                status = path.stat()
            except FileNotFoundError:
                return path
            if not os.path.samestat(status, opened):
                return path
        return None


def _existing_files(database: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for suffix in ("", "-wal", "-shm"):
        path = database.with_name(f"{database.name}{suffix}")
        try:
            yield path, path.stat()
        except FileNotFoundError:
            continue
