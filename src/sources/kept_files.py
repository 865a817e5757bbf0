"""A directory with the last answers of servers, for use while a server cannot be reached. Blocks."""

import os
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple


class KeptFile(NamedTuple):
    """A file from the disk."""

    content: bytes
    last_good: str
    """The date and time (UTC) of the server's last answer with this content."""


class KeptFiles:
    """Files in ``directory``, readable only by the daemon's user; the first file creates the directory.

    The oldest files beyond ``max_files`` are deleted; a file with more than ``max_bytes`` is not read.
    """

    def __init__(self, directory: Path, *, max_files: int, max_bytes: int) -> None:
        self._directory = directory
        self._max_files = max_files
        self._max_bytes = max_bytes

    def keep(self, key: bytes, content: bytes) -> None:
        """Store a server's answer under ``key``.

        Raises:
            OSError: the file cannot be written; it keeps its earlier content.
        """
        path = self._path(key)
        is_new = True
        with suppress(FileNotFoundError):
            if path.read_bytes() == content:
                os.utime(path)
                return
            is_new = False
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, unfinished = tempfile.mkstemp(dir=self._directory, suffix=".new")
        try:
            with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
                file.write(content)
                file.flush()
                os.fsync(descriptor)
            Path(unfinished).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(unfinished).unlink(missing_ok=True)
            raise
        if is_new:
            self._delete_oldest()

    def load(self, key: bytes) -> KeptFile | None:
        """Return the content under ``key``; None if it cannot be read."""
        try:
            with self._path(key).open("rb") as opened:
                content = opened.read(self._max_bytes)
                modified = os.fstat(opened.fileno()).st_mtime
        except OSError:
            return None
        return KeptFile(content, f"{datetime.fromtimestamp(modified, UTC):%Y-%m-%d %H:%M:%S} UTC")

    def delete(self, key: bytes) -> None:
        """Delete the content under ``key``, if there is any.

        Raises:
            OSError: the file cannot be deleted.
        """
        self._path(key).unlink(missing_ok=True)

    def _path(self, key: bytes) -> Path:
        return self._directory / f"{sha256(key).hexdigest()[:32]}.json"

    def _delete_oldest(self) -> None:
        files = list(self._directory.glob("*.json"))
        if len(files) > self._max_files:
            with suppress(OSError):
                files.sort(key=lambda file: file.stat().st_mtime)
                for file in files[: len(files) - self._max_files]:
                    file.unlink(missing_ok=True)
