"""File access: which files may be read, and the errors for all others."""

import asyncio
import base64
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from toold.protocol.error_codes import InvalidArgumentsError, NotFoundError, PermissionDeniedError
from toold.protocol.image_types import image_type
from toold.tools import FileAccess
from toold.tools.workspace_files import (
    MAX_IMAGE_BYTES,
    MAX_TEXT_BYTES,
    BinaryFile,
    TextFile,
)

Write = Callable[[str, str | bytes], Path]

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.fixture
def access(workspace: Path) -> FileAccess:
    """May read ``workspace`` but not ``workspace/state`` and ``workspace/toold.toml``."""
    return FileAccess((workspace,), denied=(workspace / "state", workspace / "toold.toml"))


async def test_a_text_file_is_read(access: FileAccess, write: Write) -> None:
    """The result contains the path relative to the root and the text."""
    write("src/main.py", "é = 1\nprint(é)")
    assert await access.read_text("src/main.py") == TextFile("src/main.py", "é = 1\nprint(é)")


async def test_a_byte_order_mark_is_removed(access: FileAccess, write: Write) -> None:
    """The text of a file excludes its byte order mark."""
    write("a.txt", b"\xef\xbb\xbfhello")
    assert (await access.read_text("a.txt")).text == "hello"


async def test_any_file_is_read_as_bytes(access: FileAccess, write: Write) -> None:
    """``read_bytes`` returns the bytes up to the given limit and refuses files that are denied."""
    write("a.bin", b"\0\xff")
    assert await access.read_bytes("a.bin", 2) == BinaryFile("a.bin", b"\0\xff")
    with pytest.raises(InvalidArgumentsError, match="has 2 bytes; 1 are allowed"):
        await access.read_bytes("a.bin", 1)
    with pytest.raises(PermissionDeniedError):
        await access.read_bytes("toold.toml", 1)


async def test_a_file_that_looks_like_a_secret_is_not_read(workspace: Path, write: Write) -> None:
    """The check covers name, content and links, and existing and missing files; the operator can allow a file."""
    access = FileAccess((workspace,), secrets=("test/.env",))
    write(".env", "KEY=s3cret")
    write("test/.env", "KEY=none")
    write("notes.txt", "-----BEGIN PRIVATE KEY-----\ns3cret")
    (workspace / "link.txt").symlink_to(".env")
    for path in (".env", "gone.pem", "notes.txt", "link.txt"):
        for reading in (
            access.read_text(path),
            access.read_bytes(path, 100),
            access.for_client("x", trusted=False).read_text(path),
        ):
            with pytest.raises((PermissionDeniedError, NotFoundError)) as caught:
                await reading
            assert "s3cret" not in caught.value.message
    with pytest.raises(PermissionDeniedError, match=r"looks like a secret.*TOOLD_READABLE_SECRETS"):
        await access.read_text("link.txt")
    assert (await access.read_text("test/.env")).text == "KEY=none"
    access.set_roots([workspace], secrets=[".env"])
    assert (await access.read_text(".env")).text == "KEY=s3cret"


async def test_every_spelling_of_a_path_reaches_the_file(access: FileAccess, write: Write) -> None:
    """Relative and absolute paths, paths with dots and links inside the root reach the same file."""
    path = write("docs/a.md", "hi")
    (path.parent.parent / "link.md").symlink_to("docs/a.md")
    (path.parent.parent / "linked").symlink_to(path.parent)
    for spelling in ("docs/a.md", str(path), "docs/../docs/./a.md", "link.md", "linked/a.md"):
        assert await access.read_text(spelling) == TextFile("docs/a.md", "hi")


async def test_a_missing_file_is_not_found(access: FileAccess, write: Write) -> None:
    """The error contains the path as the caller gave it."""
    write("a.txt", "hi")
    for path in ("b.txt", "a.txt/b.txt"):
        with pytest.raises(NotFoundError, match=f"'{path}' does not exist"):
            await access.read_text(path)


async def test_only_regular_files_are_read(access: FileAccess, workspace: Path) -> None:
    """Directories, pipes and sockets are rejected at once with their type; a pipe without a writer does not block."""
    (workspace / "directory").mkdir()
    os.mkfifo(workspace / "pipe")
    here = Path.cwd()
    os.chdir(workspace)  # a socket's path is bounded to some 100 bytes
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("socket")
    finally:
        os.chdir(here)
    for path, says in {
        "directory": "is a directory",
        ".": "is a directory",
        "pipe": "is a pipe",
        "socket": "is a pipe",
    }.items():
        with pytest.raises(InvalidArgumentsError, match=says):
            await asyncio.wait_for(access.read_text(path), 20)


async def test_a_device_is_rejected() -> None:
    """A device is not read even if ``/dev`` is a root."""
    with pytest.raises(InvalidArgumentsError, match="device"):
        await FileAccess((Path("/dev"),)).read_text("zero")


@pytest.mark.parametrize(
    ("path", "says"),
    [("", "path is empty"), ("a\0b", "NUL character"), ("x" * 300, "longer than any path")],
)
async def test_an_invalid_path_is_rejected(access: FileAccess, path: str, says: str) -> None:
    """The error states the reason and does not repeat a long path."""
    with pytest.raises(InvalidArgumentsError, match=says) as caught:
        await access.read_text(path)
    assert len(caught.value.message) < 300


async def test_a_very_long_path_is_rejected_at_once(access: FileAccess) -> None:
    """The path is not resolved, because that would block the daemon for minutes.

    A very long client directory is ignored.
    """
    path = "a/" * 1_500_000
    with pytest.raises(InvalidArgumentsError, match="longer than any path"):
        await access.read_text(path)
    assert access.for_client(path, trusted=False) is access


async def test_a_circular_link_is_rejected(access: FileAccess, workspace: Path) -> None:
    """A link to itself causes an error."""
    (workspace / "round").symlink_to("round")
    with pytest.raises(InvalidArgumentsError, match="circular"):
        await access.read_text("round")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads what permissions forbid")
async def test_a_file_without_read_permission_is_reported(access: FileAccess, write: Write) -> None:
    """The error says that the daemon's user may not read the file."""
    write("a.txt", "hi").chmod(0)
    with pytest.raises(PermissionDeniedError, match=r"may not read 'a\.txt'"):
        await access.read_text("a.txt")


async def test_a_large_file_is_rejected_with_both_sizes(access: FileAccess, write: Write) -> None:
    """A file of exactly the maximum size is read; with one more byte the error gives the actual and the maximum
    size."""
    write("fits.txt", b"x" * MAX_TEXT_BYTES)
    write("over.txt", b"x" * (MAX_TEXT_BYTES + 1))
    assert len((await access.read_text("fits.txt")).text) == MAX_TEXT_BYTES
    with pytest.raises(InvalidArgumentsError, match="has 1,048,577 bytes; 1,048,576 are allowed"):
        await access.read_text("over.txt")


@pytest.mark.parametrize(
    ("data", "says"), [(b"\x7fELF\0\0", "is a binary file"), (b"caf\xe9", r"is not UTF-8 \(byte 3\)")]
)
async def test_a_file_that_is_not_text_is_rejected(access: FileAccess, write: Write, data: bytes, says: str) -> None:
    """The error distinguishes binary files from files that are not UTF-8."""
    write("a.bin", data)
    with pytest.raises(InvalidArgumentsError, match=says):
        await access.read_text("a.bin")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF89arest", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
async def test_an_image_becomes_a_data_url(access: FileAccess, write: Write, data: bytes, kind: str) -> None:
    """The type of the image is determined by its first bytes, not by its name."""
    write("picture.dat", data)
    url = await access.read_image("picture.dat")
    assert url.startswith(f"data:{kind};base64,")
    assert base64.b64decode(url.partition(",")[2]) == data


@pytest.mark.parametrize("data", [b"", b"<svg/>", b"RIFF\x10\0\0\0WAVEfmt "])
async def test_a_file_that_is_not_an_image_is_rejected(access: FileAccess, write: Write, data: bytes) -> None:
    """The error lists the supported formats."""
    assert image_type(data) is None
    write("picture.png", data)
    with pytest.raises(InvalidArgumentsError, match="not a PNG, JPEG, WebP or GIF"):
        await access.read_image("picture.png")


async def test_a_large_image_is_rejected(access: FileAccess, write: Write) -> None:
    """An image over the size limit is rejected before it is encoded."""
    write("picture.png", PNG + bytes(MAX_IMAGE_BYTES - len(PNG) + 1))
    with pytest.raises(InvalidArgumentsError, match="has 10,485,761 bytes; 10,485,760 are allowed"):
        await access.read_image("picture.png")


def test_repr_shows_the_roots() -> None:
    """The repr of a FileAccess contains its roots."""
    assert repr(FileAccess(())) == "<FileAccess below nothing>"
