"""The directory of result files: written whole or not at all, bounded in bytes and time. Blocks, and is for one thread
at a time; ``results`` is how the daemon asks it.

Exceptions::

    ResultGoneError      it was here, and its time is over, or others took its room
    ResultUnknownError   nothing was ever kept under this handle for this principal
    NoRoomError          it is more than all files together may be
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
from typing import Final, NamedTuple

REMEMBERED_S: Final = 7 * 86400.0
"""How long it is known of a file that it was there; as of the ids of calls (docs/protocol.md)."""

_PLAIN_NAME: Final = re.compile(r"[a-z0-9_-]{1,40}")
_MAX_NAME_CHARS: Final = 150
_GONE: Final = "gone"
_UNFINISHED: Final = "new"


class ResultGoneError(Exception):
    """It was here, and is not any more."""


class ResultUnknownError(Exception):
    """Nothing was ever kept under this handle for this principal."""


class NoRoomError(Exception):
    """It is more than all files together may be."""


class StoredResult(NamedTuple):
    """One file."""

    extension: str
    size: int
    at: float
    """When it was written, in Unix seconds."""


@dataclass(slots=True)
class _Shelf:
    """The files of one principal."""

    files: dict[Path, StoredResult] = field(default_factory=dict)
    """By place, which is a path without its extension; the oldest first."""
    size: int = 0
    """Bytes of all of them."""

    def put(self, place: Path, kept: StoredResult) -> None:
        self.files[place] = kept
        self.size += kept.size

    def take(self, place: Path) -> None:
        self.size -= self.files.pop(place).size


class ResultDirectory:
    """Files below ``path``, a directory a principal: ``<principal>/<handle>.<extension>``, for the daemon's user alone.

    Of a file that is removed an empty one stays for ``REMEMBERED_S``. ``keep_s`` and ``keep_bytes`` may change.
    """

    def __init__(self, path: Path, *, keep_s: float, keep_bytes: int) -> None:
        self.keep_s = keep_s
        self.keep_bytes = keep_bytes
        self._path = path
        # By the principal's directory. None until the directory was looked at.
        self._shelves: defaultdict[Path, _Shelf] | None = None

    def write(self, principal: str, handle: str, extension: str, pieces: Iterable[bytes], now: float) -> int:
        """Write a file in the place of what was there under the handle; returns its bytes.

        Raises:
            NoRoomError: it is too large; nothing was written.
            OSError: the disk refuses; nothing was written.
        """
        place = self._place(principal, handle)
        shelf = self._known()[place.parent]
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = place.with_suffix(f".{_UNFINISHED}")
        try:
            size = _write(unfinished, pieces, self.keep_bytes)
            if place in shelf.files:
                self._remove(place)
            self._make_room(place.parent, size)
            unfinished.replace(place.with_suffix(f".{extension}"))
        except BaseException:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise
        shelf.put(place, StoredResult(extension, size, now))
        return size

    def read(self, principal: str, handle: str, now: float) -> tuple[str, bytes]:
        """The extension and the content of a file.

        Raises:
            ResultGoneError, ResultUnknownError: there is none.
            OSError: the disk refuses.
        """
        place = self._place(principal, handle)
        shelf = self._known().get(place.parent)
        kept = None if shelf is None else shelf.files.get(place)
        if kept is None:
            raise ResultGoneError if place.with_suffix(f".{_GONE}").exists() else ResultUnknownError
        if kept.at + self.keep_s < now:
            raise ResultGoneError
        try:
            return kept.extension, place.with_suffix(f".{kept.extension}").read_bytes()
        except FileNotFoundError:
            raise ResultGoneError from None  # somebody else removed it

    def tidy(self, now: float) -> None:
        """Remove what is too old, what is too much, and what was left unfinished.

        Raises:
            OSError: the disk refuses.
        """
        for shelf in self._known().values():
            for place in [place for place, kept in shelf.files.items() if kept.at + self.keep_s < now]:
                self._remove(place)
        self._make_room(self._path, 0)
        for path in self._all():
            if path.suffix == f".{_GONE}" and path.stat().st_mtime + REMEMBERED_S < now:
                path.unlink(missing_ok=True)

    def _known(self) -> defaultdict[Path, _Shelf]:
        """Every file; what a crash left unfinished is removed when this is first asked."""
        if self._shelves is None:
            found: dict[Path, StoredResult] = {}
            for path in self._all():
                if path.suffix == f".{_UNFINISHED}":
                    path.unlink(missing_ok=True)
                elif path.suffix != f".{_GONE}":
                    status = path.stat()
                    found[path.with_suffix("")] = StoredResult(path.suffix[1:], status.st_size, status.st_mtime)
            self._shelves = defaultdict(_Shelf)
            for place in sorted(found, key=lambda place: found[place].at):
                self._shelves[place.parent].put(place, found[place])
        return self._shelves

    def _all(self) -> list[Path]:
        return [path for path in self._path.glob("*/*") if path.is_file() and not path.is_symlink()]

    def _make_room(self, directory: Path, size: int) -> None:
        """Have so many bytes more in this principal's directory be within the bound: whoever has most gives its
        oldest, so that nobody's many files are another's loss.
        """
        shelves = self._known()
        excess = sum(shelf.size for shelf in shelves.values()) + size - self.keep_bytes
        while excess > 0:
            given = [
                (shelf.size + (size if of == directory else 0), -kept.at, place)
                for of, shelf in shelves.items()
                for place, kept in islice(shelf.files.items(), 1)
            ]
            _, _, place = max(given)
            excess -= shelves[place.parent].files[place].size
            self._remove(place)

    def _remove(self, place: Path) -> None:
        shelf = self._known()[place.parent]
        extension = shelf.files[place].extension
        os.close(os.open(place.with_suffix(f".{_GONE}"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        place.with_suffix(f".{extension}").unlink(missing_ok=True)
        shelf.take(place)

    def _place(self, principal: str, handle: str) -> Path:
        """Where a file lies, without its extension."""
        return self._path / _file_name(principal) / _file_name(handle)


def _file_name(text: str) -> str:
    """A file name that no other text has, on any file system; what can be is as it is."""
    if _PLAIN_NAME.fullmatch(text):
        return text
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", text[:_MAX_NAME_CHARS])
    return f"{readable}~{digest}"


def _write(path: Path, pieces: Iterable[bytes], most: int) -> int:
    path.unlink(missing_ok=True)
    size = 0
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        for piece in pieces:
            size += len(piece)
            if size > most:
                raise NoRoomError
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return size
