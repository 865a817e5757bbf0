"""Which of the machine's files a call may read, and reading them. Nothing here writes."""

import asyncio
import base64
import errno
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..protocol.error_codes import CallError, InvalidArgumentsError, NotFoundError, PermissionDeniedError
from .secret_files import allowed, begins_like_a_key, named_like_a_secret

MAX_TEXT_BYTES: Final = 1024 * 1024
"""Of one text file: some 260,000 tokens at four bytes a token."""
MAX_IMAGE_BYTES: Final = 10 * 1024 * 1024
"""Of one image file: as base64 it still fits into a vendor's request with room to spare."""

MAX_PATH_CHARS: Final = 4_096
"""As long as a path can be on Linux. Resolving one takes time that grows with the square of its length."""

_LOOK_S: Final = 5.0
"""Where a client's directory leads is found out within this, or not told."""
_SHOWN_PATH_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text file as it was when it was read."""

    name: str
    """Its path below the root that it lies in."""
    text: str


@dataclass(frozen=True, slots=True)
class BinaryFile:
    """A file as it was when it was read, whatever is in it."""

    name: str
    """Its path below the root that it lies in."""
    content: bytes


class FileAccess:
    """Reads files below the roots, with symbolic links resolved, and nothing else.

    ``denied`` files and directories are not read even below a root: the state directory holds the token, and
    ``toold.toml`` may hold keys. What looks like a secret (``secrets.py``) is read only where a pattern of ``secrets``
    fits it. Relative paths start at the first root, or at ``start``, a client's own directory.
    """

    def __init__(
        self, roots: Iterable[Path], *, denied: Iterable[Path] = (), secrets: Iterable[str] = (), start: str = ""
    ) -> None:
        self._client_directory = start
        self._denied: tuple[Path, ...] = ()
        self.look_below(roots, denied=denied, secrets=secrets)

    def __repr__(self) -> str:
        return f"<FileAccess below {', '.join(map(str, self.roots)) or 'nothing'}>"

    def look_below(self, roots: Iterable[Path], *, denied: Iterable[Path] = (), secrets: Iterable[str] = ()) -> None:
        """From now on read below these roots, and these secrets; what was denied before stays so."""
        # First: a thread may be reading between these lines.
        self._secrets = tuple(secrets)
        self._denied += tuple(Path(os.path.realpath(path)) for path in denied)
        self.roots: tuple[Path, ...] = tuple(Path(os.path.realpath(root)) for root in roots)
        self._start = (self.roots[0] if self.roots else Path.cwd()) / self._client_directory

    def starting_at(self, directory: str | None) -> "FileAccess":
        """The same, with relative paths starting at the client's directory where it names one (``hello.client``)."""
        if not directory or "\0" in directory or len(directory) > MAX_PATH_CHARS:
            return self
        return FileAccess(self.roots, denied=self._denied, secrets=self._secrets, start=directory)

    async def objection_to(self, directory: str | None) -> str | None:
        """Why no file can be read by paths that start at the client's directory, or why they do not start there.

        None where it is well, or a disk that hangs does not say: who names a directory must not wait for it to be let
        in. One that holds a root is well: paths may lead from it into the root.
        """
        if not directory:
            return None
        if "\0" in directory or len(directory) > MAX_PATH_CHARS:
            return "it is no path, so relative paths start at the first workspace directory"
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                return await asyncio.to_thread(self._objection_to, directory)
        return None

    def _objection_to(self, directory: str) -> str | None:
        try:
            start = Path(os.path.realpath(os.path.normpath(self.starting_at(directory)._start)))
        except (OSError, ValueError):  # as in _located
            start = None
        if start is not None and not any(map(start.is_relative_to, self._denied)):
            near = [root for root in self.roots if start.is_relative_to(root) or root.is_relative_to(start)]
            if near:
                return None
        return (
            "relative paths start there, and it is not below the directories that this daemon may read, so they are "
            "refused; name a directory there, or let the operator add this one to TOOLD_WORKSPACE"
        )

    async def read_text(self, path: str) -> TextFile:
        """The text file at ``path``, read off the event loop.

        Raises:
            InvalidArgumentsError: no path at all, not a regular file, over ``MAX_TEXT_BYTES``, binary, or not UTF-8.
            NotFoundError: there is no such file below the roots.
            PermissionDeniedError: it leads outside the roots or to what is denied, whether or not it exists; it looks
                like a secret; or the operating system refuses it.
        """
        return await asyncio.to_thread(self._read_text, path)

    async def read_image(self, path: str) -> str:
        """The image file at ``path`` (PNG, JPEG, WebP or GIF by its first bytes) as a ``data:`` URL.

        Raises:
            CallError: as ``read_text``, with the bound ``MAX_IMAGE_BYTES``.
        """
        return await asyncio.to_thread(self._read_image, path)

    async def read_bytes(self, path: str, max_bytes: int) -> BinaryFile:
        """The file at ``path``, whatever is in it, of so many bytes at most.

        Raises:
            CallError: as ``read_text``, with another bound.
        """
        return BinaryFile(*await asyncio.to_thread(self._read, path, max_bytes))

    def _read_text(self, path: str) -> TextFile:
        name, data = self._read(path, MAX_TEXT_BYTES)
        if b"\0" in data:
            raise InvalidArgumentsError(f"{_shown(path)} is a binary file; only text can be attached.")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InvalidArgumentsError(
                f"{_shown(path)} is not UTF-8 (byte {error.start}); convert it, or leave it out if it is binary."
            ) from error
        return TextFile(name, text)

    def _read_image(self, path: str) -> str:
        _, data = self._read(path, MAX_IMAGE_BYTES)
        kind = image_type(data)
        if kind is None:
            raise InvalidArgumentsError(f"{_shown(path)} is no PNG, JPEG, WebP or GIF image; convert it to one.")
        return f"data:{kind};base64,{base64.b64encode(data).decode()}"

    def _located(self, path: str) -> tuple[Path, Path]:
        """The root that ``path`` leads into, and where it leads."""
        if not path:
            raise InvalidArgumentsError("The path is empty; name a file.")
        if "\0" in path:
            raise InvalidArgumentsError("The path holds a NUL character; no file is called that.")
        if len(path) > MAX_PATH_CHARS:
            raise _too_long(path)
        try:
            # `..` goes first, as text, so that no directory outside the roots is looked at on the way.
            target = Path(os.path.realpath(os.path.normpath(self._start / path)))
        except (OSError, ValueError):  # too long, or half of a surrogate pair: nothing can be there
            raise self._outside(path) from None
        root = next((root for root in self.roots if target.is_relative_to(root)), None)
        if root is None or any(target.is_relative_to(denied) for denied in self._denied):
            raise self._outside(path)
        if self._is_kept(name := target.relative_to(root).as_posix()) and named_like_a_secret(name):
            raise _secret(path)
        return root, target

    def _is_kept(self, name: str) -> bool:
        """Whether a file of this name is not read if it looks like a secret."""
        return not allowed(name, self._secrets)

    def _read(self, path: str, max_bytes: int) -> tuple[str, bytes]:
        """The file's name below its root, and what is in it."""
        root, target = self._located(path)
        try:
            descriptor = self._open(root, target, path)
            try:
                data = _contents(descriptor, path, max_bytes)
            finally:
                os.close(descriptor)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.ENOTDIR}:
                hint = self._beginning(path)
                raise NotFoundError(f"{_shown(path)} does not exist.{hint}") from error
            raise _refused(path, error) from error
        name = target.relative_to(root).as_posix()
        if self._is_kept(name) and begins_like_a_key(data):
            raise _secret(path)
        return name, data

    def _open(self, root: Path, target: Path, path: str) -> int:
        """Open ``target``, which holds no link, directory by directory from the root down, following none.

        A link that somebody puts there between the check and this fails the open; nothing is opened by a path that
        was only checked. Each directory is also compared with the denied ones by identity, since a path's spelling
        differs where the file system ignores case. A pipe does not hang it: it is opened without waiting.
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
        hint = self._beginning(path)
        return PermissionDeniedError(
            f"{_shown(path)} is not below the directories that this daemon may read; name a file there, "
            f"or let the operator add its directory to TOOLD_WORKSPACE.{hint}"
        )

    def _beginning(self, path: str) -> str:
        """Of a relative path, where it starts, as the client knows that directory."""
        if Path(path).is_absolute():
            return ""
        named = f"{_shown(self._client_directory)}, the directory that this client named"
        return f" Relative paths start at {named if self._client_directory else 'the first workspace directory'}."


_IMAGE_TYPES: Final[tuple[tuple[str, Callable[[bytes], bool]], ...]] = (
    ("image/png", lambda data: data.startswith(b"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", lambda data: data.startswith(b"\xff\xd8\xff")),
    ("image/gif", lambda data: data.startswith((b"GIF87a", b"GIF89a"))),
    ("image/webp", lambda data: data.startswith(b"RIFF") and data[8:12] == b"WEBP"),
)


def image_type(data: bytes) -> str | None:
    """The media type of an image by its first bytes; None for anything but PNG, JPEG, GIF and WebP."""
    return next((kind for kind, matches in _IMAGE_TYPES if matches(data)), None)


def _contents(descriptor: int, path: str, max_bytes: int) -> bytes:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise _not_regular(path, status.st_mode)
    data = b""
    if status.st_size <= max_bytes:
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(max_bytes + 1)  # one byte more tells of a file that grows, or has no size (as in /proc)
    if (size := max(status.st_size, len(data))) > max_bytes:
        raise InvalidArgumentsError(
            f"{_shown(path)} has {size:,} bytes; {max_bytes:,} are allowed: give a shorter file, or a part of it."
        )
    return data


def _existing(paths: Iterable[Path]) -> list[os.stat_result]:
    return [path.stat() for path in paths if path.exists()]


def _shown(path: str) -> str:
    """The path as the caller gave it, bounded."""
    return repr(path if len(path) <= _SHOWN_PATH_CHARS else f"{path[:_SHOWN_PATH_CHARS]}…")


def _secret(path: str) -> PermissionDeniedError:
    return PermissionDeniedError(
        f"{_shown(path)} looks like a secret, which is never read because a caller asks; "
        "the operator can allow it by name in TOOLD_READABLE_SECRETS."
    )


def _not_regular(path: str, mode: int) -> InvalidArgumentsError:
    if stat.S_ISDIR(mode):
        return InvalidArgumentsError(f"{_shown(path)} is a directory; name the files in it that are meant.")
    return InvalidArgumentsError(f"{_shown(path)} is a pipe, socket or device; only regular files are read.")


def _too_long(path: str) -> InvalidArgumentsError:
    return InvalidArgumentsError(f"{_shown(path)} is longer than a path can be.")


def _refused(path: str, error: OSError) -> CallError:
    """The operating system's refusal, without the server's own paths."""
    match error.errno:
        case errno.EACCES | errno.EPERM:
            return PermissionDeniedError(
                f"{_shown(path)} may not be read by the daemon's user; change the file's permissions."
            )
        case errno.ELOOP:
            return InvalidArgumentsError(
                f"{_shown(path)} is a link that leads in a circle, or changed while it was read."
            )
        case errno.ENXIO:
            return _not_regular(path, stat.S_IFSOCK)
        case errno.ENAMETOOLONG:
            return _too_long(path)
        case _:
            return InvalidArgumentsError(f"{_shown(path)} cannot be read: {os.strerror(error.errno or errno.EIO)}.")
