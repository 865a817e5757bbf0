"""Read access to files for calls. Nothing here writes."""

import asyncio
import base64
import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from ..protocol.error_codes import CallError, InvalidArgumentsError, NotFoundError, PermissionDeniedError
from ..protocol.image_types import image_type
from .file_refusals import (
    not_regular,
    path_too_long,
    private_link_refused,
    refused_by_system,
    secret_refused,
    shown_path,
)
from .secret_files import allowed, begins_like_a_key, contains_login, is_private_link, named_like_a_secret
from .workspace_folders import FolderFiles, text_files_of

MAX_TEXT_BYTES: Final = 1024 * 1024
"""The maximum size of a text file: some 260,000 tokens at four bytes per token."""
MAX_IMAGE_BYTES: Final = 10 * 1024 * 1024
"""The maximum size of an image file: as base64, it still fits into a vendor's request."""

MAX_NAMES: Final = 2000
"""The maximum number of names in the listing of a directory; models cannot use more."""
MAX_PATH_CHARS: Final = 4_096
"""The longest path on Linux. Resolving a path takes time quadratic in its length."""

HOW_TO_ALLOW: Final = (
    "To allow it, the operator adds the directory to `workspace` in the daemon's toold.toml (`toold doctor` names the "
    "file), or sets `client_workspaces = true` there for the folders that editors have open (not the home directory); "
    "`toold install EDITOR` sets one of them"
)

_RESOLVE_TIMEOUT_S: Final = 5.0
"""The timeout for resolving a client's directory."""


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text file and its content when it was read."""

    name: str
    """Its path relative to its root."""
    text: str


@dataclass(frozen=True, slots=True)
class BinaryFile:
    """A file with any content, and its content when it was read."""

    name: str
    """Its path relative to its root."""
    content: bytes


class FileAccess:
    """Reads files below the roots, with symbolic links resolved, and no others.

    ``denied`` files and directories are not read even below a root: the state directory has the token, and
    ``toold.toml`` may have keys. Files that look like secrets (``secret_files.py``) are read only if a pattern of
    ``secrets`` matches. Relative paths start at the first root, or at the client's directory (``for_client``).
    """

    def __init__(
        self,
        roots: Iterable[Path],
        *,
        denied: Iterable[Path] = (),
        secrets: Iterable[str] = (),
        client_workspaces: bool = False,
    ) -> None:
        self._client_directory = ""
        self._reads_client_directory = False
        self._denied: tuple[Path, ...] = ()
        self.set_roots(roots, denied=denied, secrets=secrets, client_workspaces=client_workspaces)

    def __repr__(self) -> str:
        return f"<FileAccess below {', '.join(map(str, self.roots)) or 'nothing'}>"

    def set_roots(
        self,
        roots: Iterable[Path],
        *,
        denied: Iterable[Path] = (),
        secrets: Iterable[str] = (),
        client_workspaces: bool = False,
    ) -> None:
        """Replace the roots and the readable secrets; earlier ``denied`` paths stay denied.

        With ``client_workspaces``, the directory of a trusted client is one more root for its calls.
        """
        # The order matters: a thread may be reading between these lines.
        self._client_workspaces = client_workspaces
        self._secrets = tuple(secrets)
        self._denied += tuple(Path(os.path.realpath(path)) for path in denied)
        self.roots: tuple[Path, ...] = tuple(Path(os.path.realpath(root)) for root in roots)
        self._start = (self.roots[0] if self.roots else Path.cwd()) / self._client_directory

    def for_client(self, directory: str | None, *, trusted: bool) -> "FileAccess":
        """The access for a client that names its directory (``hello.client``), where relative paths then start.

        The access keeps the current roots. ``trusted`` clients hold the daemon's own token.
        """
        if not directory or "\0" in directory or len(directory) > MAX_PATH_CHARS:
            return self
        access = FileAccess(self.roots, denied=self._denied, secrets=self._secrets)
        access._client_directory = directory
        access._reads_client_directory = trusted and self._client_workspaces
        access._start = self._start / directory
        return access

    async def start_problem(self, directory: str | None, *, trusted: bool) -> str | None:
        """The reason why paths relative to the client's directory cannot be read, or do not start there.

        None if there is no problem, or if the disk does not respond in time, since admitting a client must not wait for
        it. A directory that contains a root is fine, since paths may lead from it into the root.
        """
        if not directory:
            return None
        if "\0" in directory or len(directory) > MAX_PATH_CHARS:
            return "it is not a path, so relative paths start at the first workspace directory"
        with suppress(TimeoutError):
            async with asyncio.timeout(_RESOLVE_TIMEOUT_S):
                return await asyncio.to_thread(self.for_client(directory, trusted=trusted)._start_problem)
        return None

    def _start_problem(self) -> str | None:
        try:
            start = Path(os.path.realpath(os.path.normpath(self._start)))
        except (OSError, ValueError):  # as in _located
            start = None
        if start is not None and not any(map(start.is_relative_to, self._denied)):
            near = [root for root in self._all_roots() if start.is_relative_to(root) or root.is_relative_to(start)]
            if near:
                return None
        return (
            "relative paths start there, but it is outside the directories that this daemon may read, so they are "
            f"refused; use a directory inside. {HOW_TO_ALLOW}"
        )

    def _all_roots(self) -> tuple[Path, ...]:
        """The roots, and the client's directory if it is also a root. Accesses the disk."""
        if not self._reads_client_directory:
            return self.roots
        root = client_root(self._client_directory, Path.home())
        return self.roots if root is None else (*self.roots, root)

    async def listed_roots(self) -> tuple[Path, ...]:
        """The existing directories that may be read, found in a thread."""
        return await asyncio.to_thread(lambda: tuple(root for root in self._all_roots() if root.is_dir()))

    async def read_text(self, path: str) -> TextFile:
        """The text file at ``path``, read in a thread.

        Raises:
            InvalidArgumentsError: the path is empty, or the file is not regular, has over ``MAX_TEXT_BYTES``, is
            binary, or is not UTF-8.
            NotFoundError: there is no such file below the roots.
            PermissionDeniedError: the file is outside the roots or denied, even if it does not exist; it looks like a
            secret; or the operating system denies access.
        """
        return await asyncio.to_thread(self._read_text, path)

    async def folder_files(self, path: str) -> FolderFiles | None:
        """The text files of the folder at ``path``, listed in a thread; None if it is a file or missing.

        Raises:
            CallError: as raised by ``read_text``, if the path is not below a root.
        """
        return await asyncio.to_thread(self._folder_files, path)

    async def read_image(self, path: str) -> str:
        """The image file at ``path`` (PNG, JPEG, WebP or GIF by its first bytes) as a ``data:`` URL.

        Raises:
            CallError: as raised by ``read_text``, with the limit ``MAX_IMAGE_BYTES``.
        """
        return await asyncio.to_thread(self._read_image, path)

    async def read_bytes(self, path: str, max_bytes: int) -> BinaryFile:
        """The file at ``path`` with any content, of at most ``max_bytes``.

        Raises:
            CallError: as raised by ``read_text``, with this limit.
        """
        return BinaryFile(*await asyncio.to_thread(self._read, path, max_bytes))

    async def locate(self, path: str) -> Path:
        """The resolved path of an existing file or directory below the roots, for a program that opens it itself.

        Raises:
            CallError: as raised by ``read_text``, except for the errors that depend on the content.
        """
        return await asyncio.to_thread(self._locate, path)

    async def readable_roots(self) -> tuple[Path, ...]:
        """The directories below which files may be read."""
        return await asyncio.to_thread(self._all_roots)

    async def names_in(self, path: str) -> list[str]:
        """The names of the readable files and directories in a directory, sorted, directories with a slash at the end;
        at most ``MAX_NAMES``.

        Raises:
            CallError: as raised by ``locate``; InvalidArgumentsError if it is not a directory.
        """
        return await asyncio.to_thread(self._names_in, path)

    def _names_in(self, path: str) -> list[str]:
        _, target = self._located(path)
        names: list[str] = []
        try:
            with os.scandir(target) as entries:
                for entry in islice(entries, MAX_NAMES):
                    with suppress(
                        CallError
                    ):  # the file looks like a secret, is denied, or is a link that leads outside
                        _, located = self._located(os.path.join(target, entry.name))  # noqa: PTH118 - the name may be odd
                        names.append(f"{entry.name}/" if located.is_dir() else entry.name)
        except OSError as error:
            if error.errno == errno.ENOTDIR:
                raise InvalidArgumentsError(f"{shown_path(path)} is not a directory.") from error
            raise refused_by_system(path, error) from error
        return sorted(names)

    def _locate(self, path: str) -> Path:
        _, target = self._located(path)
        if not target.exists():
            hint = self._start_hint(path)
            raise NotFoundError(f"{shown_path(path)} does not exist.{hint}")
        return target

    def _read_text(self, path: str) -> TextFile:
        name, data = self._read(path, MAX_TEXT_BYTES)
        if b"\0" in data:
            raise InvalidArgumentsError(f"{shown_path(path)} is a binary file; only text can be attached.")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InvalidArgumentsError(
                f"{shown_path(path)} is not UTF-8 (byte {error.start}); convert it, or omit it if it is binary."
            ) from error
        return TextFile(name, text)

    def _folder_files(self, path: str) -> FolderFiles | None:
        root, target = self._located(path)
        if not target.is_dir():
            return None
        denied = {(status.st_dev, status.st_ino) for status in _existing(self._denied)}
        return text_files_of(path, root, target, denied, lambda file: len(self._read_text(file).text.encode()))

    def _read_image(self, path: str) -> str:
        _, data = self._read(path, MAX_IMAGE_BYTES)
        kind = image_type(data)
        if kind is None:
            raise InvalidArgumentsError(f"{shown_path(path)} is not a PNG, JPEG, WebP or GIF image; convert it to one.")
        return f"data:{kind};base64,{base64.b64encode(data).decode()}"

    def _located(self, path: str) -> tuple[Path, Path]:
        """The root that contains ``path``, and the resolved path."""
        if not path:
            raise InvalidArgumentsError("The path is empty; name a file.")
        if "\0" in path:
            raise InvalidArgumentsError("The path contains a NUL character.")
        if len(path) > MAX_PATH_CHARS:
            raise path_too_long(path)
        try:
            # `..` is resolved as text first, so that no directory outside the roots is accessed.
            target = Path(os.path.realpath(os.path.normpath(self._start / path)))
        except (OSError, ValueError):  # too long, or half of a surrogate pair: no such file can exist
            raise self._outside(path) from None
        root = next((root for root in self._all_roots() if target.is_relative_to(root)), None)
        if root is None or any(target.is_relative_to(denied) for denied in self._denied):
            raise self._outside(path)
        names = [target.relative_to(root).as_posix(), self._name_as_written(path, root)]
        if root not in self.roots:  # the operator did not choose this directory, which may be ~/.ssh
            names.append(target.as_posix())
        # A link may have the secret's usual name although its target has another name.
        if not any(map(self._is_allowed, names)) and any(map(named_like_a_secret, names)):
            raise secret_refused(path)
        return root, target

    def _name_as_written(self, path: str, root: Path) -> str:
        """The path before links are resolved, relative to the root if it is below the root."""
        written = Path(os.path.normpath(self._start / path))
        return written.relative_to(root).as_posix() if written.is_relative_to(root) else written.name

    def _is_allowed(self, name: str) -> bool:
        """Whether a file with this name may be read although it looks like a secret."""
        return allowed(name, self._secrets)

    def _read(self, path: str, max_bytes: int) -> tuple[str, bytes]:
        """The file's name relative to its root, and its content."""
        root, target = self._located(path)
        try:
            descriptor = self._open(root, target, path)
            try:
                status = os.fstat(descriptor)
                data = _contents(descriptor, status, path, max_bytes)
            finally:
                os.close(descriptor)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.ENOTDIR}:
                hint = self._start_hint(path)
                raise NotFoundError(f"{shown_path(path)} does not exist.{hint}") from error
            raise refused_by_system(path, error) from error
        name = target.relative_to(root).as_posix()
        if not self._is_allowed(name):
            if begins_like_a_key(data) or contains_login(name, data):
                raise secret_refused(path)
            if is_private_link(status.st_nlink, status.st_mode):
                raise private_link_refused(path, status.st_nlink)
        return name, data

    def _open(self, root: Path, target: Path, path: str) -> int:
        """Open ``target``, which contains no link, directory by directory from the root, without following links.

        So a link that is created after the check causes an error. Each directory is also compared with the denied ones
        by identity, since spellings differ on file systems that ignore case. Pipes do not block: they are opened with
        O_NONBLOCK.
        """
        denied = {(status.st_dev, status.st_ino) for status in _existing(self._denied)}
        *directories, name = ("", *target.relative_to(root).parts)
        here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for step, flags in (
            *((directory, os.O_DIRECTORY) for directory in directories if directory),
            (name or ".", os.O_NONBLOCK | os.O_NOCTTY),
        ):
            try:
                below = os.open(step, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=here)
            finally:
                os.close(here)
            here = below
            status = os.fstat(here)
            if (status.st_dev, status.st_ino) in denied:
                os.close(here)
                raise self._outside(path)
        return here

    def _outside(self, path: str) -> PermissionDeniedError:
        hint = self._start_hint(path)
        return PermissionDeniedError(
            f"{shown_path(path)} is outside the directories that this daemon may read; name a file inside them. "
            f"{HOW_TO_ALLOW}.{hint}"
        )

    def _start_hint(self, path: str) -> str:
        """A hint that names the directory at which relative paths start, in the client's terms."""
        if Path(path).is_absolute():
            return ""
        named = f"{shown_path(self._client_directory)}, the directory that this client named"
        return f" Relative paths start at {named if self._client_directory else 'the first workspace directory'}."


def client_root(directory: str, home: Path) -> Path | None:
    """The directory that a client names, with links resolved. None if it is not absolute, or too wide to be a
    workspace: the root directory, the home directory, or a directory that contains it.
    """
    if not Path(directory).is_absolute():
        return None
    try:
        root, home = Path(os.path.realpath(os.path.normpath(directory))), Path(os.path.realpath(home))
    except (OSError, ValueError):  # half of a surrogate pair, or too long
        return None
    return None if home.is_relative_to(root) else root


def _contents(descriptor: int, status: os.stat_result, path: str, max_bytes: int) -> bytes:
    if not stat.S_ISREG(status.st_mode):
        raise not_regular(path, status.st_mode)
    data = b""
    if status.st_size <= max_bytes:
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(max_bytes + 1)  # the extra byte detects files that grow, or have no size (as in /proc)
    if (size := max(status.st_size, len(data))) > max_bytes:
        raise InvalidArgumentsError(
            f"{shown_path(path)} has {size:,} bytes; {max_bytes:,} are allowed: use a shorter file, or a part of it."
        )
    return data


def _existing(paths: Iterable[Path]) -> list[os.stat_result]:
    return [path.stat() for path in paths if path.exists()]
