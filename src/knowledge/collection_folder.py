"""Keeps a collection in sync with the text files of its folder."""

import asyncio
import os
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from ..protocol.error_codes import CallError, ServiceUnavailableError
from ..tools import MAX_ENTRIES, FileAccess, folder_entries
from .knowledge_index import KnowledgeIndex
from .knowledge_records import Scope
from .knowledge_settings import CollectionSettings

MAX_SHOWN: Final = 20
"""The maximum number of omitted files that a report names. Further files are only counted."""


class FolderReport(NamedTuple):
    """The outcome of the latest scan of the folder."""

    problem: str | None = None
    """Why the folder cannot be read. Its documents then stay unchanged."""
    left_out: tuple[tuple[str, str], ...] = ()
    """The first ``MAX_SHOWN`` files that are not documents, with the reasons."""
    left_out_count: int = 0


class _Listing(NamedTuple):
    """The documents of a folder, and the omitted files."""

    files: dict[str, tuple[Path, str]]
    """The paths and states by name."""
    unlisted: list[str]
    """Folders that could not be listed."""
    left_out: list[tuple[str, str]]


class CollectionFolder:
    """The folder of a collection."""

    def __init__(self, index: KnowledgeIndex, scope: Scope) -> None:
        self._index = index
        self._scope = scope
        # Refused files by name, with the state of the file and the reason. They are not read again until they change.
        self._refused: dict[str, tuple[str, str]] = {}

    async def update(self, settings: CollectionSettings, folder: Path, files: FileAccess) -> FolderReport:
        """Read new and changed files, and remove the documents of deleted files.

        ``files`` reads only below the folder. Files that it refuses, such as secrets, are omitted.

        Raises:
            ServiceUnavailableError: the database cannot be used.
        """
        try:
            listing = await asyncio.to_thread(_list, folder, settings)
        except OSError as error:
            return FolderReport(f"cannot be read: {os.strerror(error.errno or 0)}")
        stored = await self._index.documents(self._scope)
        gone = [name for name in stored if name not in listing.files and not _is_below(name, listing.unlisted)]
        await self._index.remove(self._scope, gone)
        self._refused = {name: refused for name, refused in self._refused.items() if name in listing.files}
        for name, (path, state) in listing.files.items():
            if (name not in stored or stored[name].file_state != state) and not self._was_refused(name, state):
                await self._read(settings, name, path, state, files)
        left_out = [*listing.left_out, *((name, reason) for name, (_, reason) in self._refused.items())]
        return FolderReport(None, tuple(left_out[:MAX_SHOWN]), len(left_out))

    def _was_refused(self, name: str, state: str) -> bool:
        return name in self._refused and self._refused[name][0] == state

    async def _read(self, settings: CollectionSettings, name: str, path: Path, state: str, files: FileAccess) -> None:
        try:
            read = await files.read_text(str(path))
            await self._index.put(self._scope, settings, name, read.text, file_state=state)
        except ServiceUnavailableError:
            raise
        except CallError as error:
            self._refused[name] = (state, error.message.removeprefix(repr(str(path))).strip())
            await self._index.remove(self._scope, [name])


def _list(folder: Path, settings: CollectionSettings) -> _Listing:
    """
    Raises:
        OSError: the folder is missing or cannot be listed.
    """
    root = Path(os.path.realpath(folder))
    os.scandir(root).close()
    listing = _Listing({}, [], [])
    size = 0
    for number, (path, excluded) in enumerate(folder_entries(root, root, ())):
        if number == MAX_ENTRIES:
            listing.left_out.append(("further files", f"only {MAX_ENTRIES:,} files and folders are scanned"))
            break
        name = path.relative_to(root).as_posix()
        if excluded.startswith("cannot be listed"):
            listing.unlisted.append(name)
        elif not _is_included(name, settings.include):
            continue
        size += _add(listing, path, name, excluded, size, settings)
    return listing


def _add(listing: _Listing, path: Path, name: str, excluded: str, size: int, settings: CollectionSettings) -> int:
    """Add a file to the listing, or the reason why it is omitted; returns its bytes."""
    try:
        status = path.stat(follow_symlinks=False)
        name.encode()
    except (OSError, UnicodeEncodeError):  # deleted meanwhile, or its name is not UTF-8
        listing.left_out.append((name.encode(errors="replace").decode(), excluded or "cannot be read"))
        return 0
    problem = excluded
    if len(listing.files) == settings.max_documents:
        problem = problem or f"the collection has {settings.max_documents:,} documents (max_documents)"
    elif size + status.st_size > settings.max_bytes:
        problem = problem or f"the collection would have more than {settings.max_bytes:,} bytes (max_bytes)"
    if problem:
        listing.left_out.append((name, problem))
        return 0
    state = f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino} {settings.cut}"
    listing.files[name] = (path, state)
    return status.st_size


def _is_included(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(PurePosixPath(name).name, pattern) or fnmatchcase(name, pattern) for pattern in patterns)


def _is_below(name: str, folders: Iterable[str]) -> bool:
    return any(name.startswith(f"{folder}/") for folder in folders)
