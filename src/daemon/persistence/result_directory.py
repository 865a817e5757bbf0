"""The directory of retained results: files written atomically, limited in size and age. Blocks; used by one thread at a
time, through ``result_files``. The exceptions are those of ``ResultStorage``.
"""

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from ...store import PLAIN_HANDLE, TOMBSTONE_TTL_S, ResultDeletedError, ResultFile, ResultSizeError, ResultUnknownError

_PLAIN_NAME: Final = re.compile(PLAIN_HANDLE)
_MAX_NAME_CHARS: Final = 150
_TOMBSTONE: Final = "gone"
_UNFINISHED: Final = "new"


@dataclass(slots=True)
class _PrincipalFiles:
    """The files of one principal."""

    files: dict[Path, ResultFile] = field(default_factory=dict)
    """By path without extension, oldest first."""
    size: int = 0
    """The size of all files, in bytes."""

    def add(self, base: Path, file: ResultFile) -> None:
        self.files[base] = file
        self.size += file.size

    def remove(self, base: Path) -> None:
        self.size -= self.files.pop(base).size


class ResultDirectory:
    """Files below ``path``, one directory per principal: ``<principal>/<handle>.<extension>``, readable only by the
    daemon's user.

    A deleted file leaves an empty tombstone file for ``TOMBSTONE_TTL_S``. ``ttl_s`` and ``max_bytes`` may change.
    """

    def __init__(self, path: Path, *, ttl_s: float, max_bytes: int) -> None:
        self.ttl_s = ttl_s
        self.max_bytes = max_bytes
        self._path = path
        # By the principal's directory. None until the directory was read.
        self._principals: defaultdict[Path, _PrincipalFiles] | None = None

    def write(self, principal: str, handle: str, extension: str, pieces: Iterable[bytes], now: float) -> int:
        """Writes a file, replacing one with the same handle; returns its size.

        Raises:
            ResultSizeError: it is too large; nothing was written.
            OSError: the write fails; nothing was written.
        """
        base = self._base(principal, handle)
        files = self._files()[base.parent]
        base.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = base.with_suffix(f".{_UNFINISHED}")
        try:
            size = _write(unfinished, pieces, self.max_bytes)
            if base in files.files:
                self._delete(base)
            self._free_space(base.parent, size)
            unfinished.replace(base.with_suffix(f".{extension}"))
        except BaseException:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise
        files.add(base, ResultFile(extension, size, now))
        return size

    def read(self, principal: str, handle: str, now: float) -> tuple[str, bytes]:
        """Returns the extension and the content of a file.

        Raises:
            ResultDeletedError, ResultUnknownError: the file does not exist.
            OSError: the read fails.
        """
        base, file = self._find(principal, handle, now)
        try:
            return file.extension, base.with_suffix(f".{file.extension}").read_bytes()
        except FileNotFoundError:
            raise ResultDeletedError from None  # deleted by another program

    def read_piece(self, principal: str, handle: str, offset: int, size: int, now: float) -> bytes:
        """Returns up to ``size`` bytes of a file.

        Raises:
            ResultDeletedError, ResultUnknownError: the file does not exist.
            OSError: the read fails.
        """
        base, file = self._find(principal, handle, now)
        try:
            with base.with_suffix(f".{file.extension}").open("rb") as opened:
                opened.seek(offset)
                return opened.read(size)
        except FileNotFoundError:
            raise ResultDeletedError from None  # deleted by another program

    def find(self, principal: str, handle: str, now: float) -> ResultFile:
        """Returns the size, format and time of a file.

        Raises:
            ResultDeletedError, ResultUnknownError: the file does not exist.
            OSError: the directory cannot be read.
        """
        return self._find(principal, handle, now)[1]

    def newest(self, principal: str, limit: int, now: float) -> list[tuple[str, ResultFile]]:
        """Returns the newest files with their handles. Handles that cannot be file names are omitted.

        Raises:
            OSError: the directory cannot be read.
        """
        owned = self._files().get(self._base(principal, "-").parent)
        files = [] if owned is None else list(owned.files.items())
        named = [(base.name, file) for base, file in reversed(files) if file.at + self.ttl_s >= now]
        return [(name, file) for name, file in named if _PLAIN_NAME.fullmatch(name)][:limit]

    def _find(self, principal: str, handle: str, now: float) -> tuple[Path, ResultFile]:
        base = self._base(principal, handle)
        files = self._files().get(base.parent)
        file = None if files is None else files.files.get(base)
        if file is None:
            raise ResultDeletedError if base.with_suffix(f".{_TOMBSTONE}").exists() else ResultUnknownError
        if file.at + self.ttl_s < now:
            raise ResultDeletedError
        return base, file

    def delete_expired(self, now: float) -> None:
        """Deletes expired files, the oldest files beyond the size limit, and expired tombstones.

        Raises:
            OSError: a deletion fails.
        """
        for files in self._files().values():
            for base in [base for base, file in files.files.items() if file.at + self.ttl_s < now]:
                self._delete(base)
        self._free_space(self._path, 0)
        for path in self._paths():
            if path.suffix == f".{_TOMBSTONE}" and path.stat().st_mtime + TOMBSTONE_TTL_S < now:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Does nothing: no file is open between two operations."""

    def _files(self) -> defaultdict[Path, _PrincipalFiles]:
        """Returns all files by principal. The first call reads the directory and deletes unfinished files."""
        if self._principals is None:
            files: dict[Path, ResultFile] = {}
            for path in self._paths():
                if path.suffix == f".{_UNFINISHED}":
                    path.unlink(missing_ok=True)
                elif path.suffix != f".{_TOMBSTONE}":
                    status = path.stat()
                    files[path.with_suffix("")] = ResultFile(path.suffix[1:], status.st_size, status.st_mtime)
            self._principals = defaultdict(_PrincipalFiles)
            for base in sorted(files, key=lambda base: files[base].at):
                self._principals[base.parent].add(base, files[base])
        return self._principals

    def _paths(self) -> list[Path]:
        return [path for path in self._path.glob("*/*") if path.is_file() and not path.is_symlink()]

    def _free_space(self, directory: Path, size: int) -> None:
        """Deletes files until ``size`` more bytes in this principal's directory fit in the limit. Each step deletes the
        oldest file of the principal with the most bytes, so that one principal's files do not displace another's.
        """
        principals = self._files()
        excess = sum(files.size for files in principals.values()) + size - self.max_bytes
        while excess > 0:
            candidates = [
                (files.size + (size if owner == directory else 0), -file.at, base)
                for owner, files in principals.items()
                for base, file in islice(files.files.items(), 1)
            ]
            _, _, base = max(candidates)
            excess -= principals[base.parent].files[base].size
            self._delete(base)

    def _delete(self, base: Path) -> None:
        files = self._files()[base.parent]
        extension = files.files[base].extension
        os.close(os.open(base.with_suffix(f".{_TOMBSTONE}"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        base.with_suffix(f".{extension}").unlink(missing_ok=True)
        files.remove(base)

    def _base(self, principal: str, handle: str) -> Path:
        """Returns the path of a file without its extension."""
        return self._path / _file_name(principal) / _file_name(handle)


def _file_name(text: str) -> str:
    """Returns a file name that is unique to the text on any file system; plain text stays unchanged."""
    if _PLAIN_NAME.fullmatch(text):
        return text
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", text[:_MAX_NAME_CHARS])
    return f"{readable}~{digest}"


def _write(path: Path, pieces: Iterable[bytes], max_bytes: int) -> int:
    path.unlink(missing_ok=True)
    size = 0
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        for piece in pieces:
            size += len(piece)
            if size > max_bytes:
                raise ResultSizeError
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return size
