"""File access: which files may be read, and the errors for all others."""

import asyncio
import base64
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toold.protocol.error_codes import CallError, InvalidArgumentsError, NotFoundError, PermissionDeniedError
from toold.tools import FileAccess
from toold.tools.workspace_files import (
    HOW_TO_ALLOW,
    MAX_IMAGE_BYTES,
    MAX_TEXT_BYTES,
    BinaryFile,
    TextFile,
    client_root,
    image_type,
)

Write = Callable[[str, str | bytes], Path]

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.fixture
def access(workspace: Path) -> FileAccess:
    """May read ``workspace`` but not ``workspace/state`` and ``workspace/toold.toml``."""
    return FileAccess((workspace,), denied=(workspace / "state", workspace / "toold.toml"))


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file outside the roots."""
    path = tmp_path / "secret.txt"
    path.write_text("s3cret")
    return path


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


async def test_a_secret_under_another_name_is_not_read(workspace: Path, write: Write, secret: Path) -> None:
    """Neither by a link with a secret's name, nor by a hard link to a private file, unless the operator allows it.

    Hard links to files that others may read are read.
    """
    access = FileAccess((workspace,))
    write("shared/production", "TOKEN=1")
    (workspace / ".env").symlink_to("shared/production")
    os.link(secret, workspace / "notes.txt")
    secret.chmod(0o600)
    write(".git/config", "[remote]\n\turl = https://me:s3cret@host/r.git")
    for path in (".env", "notes.txt", ".git/config"):
        with pytest.raises(PermissionDeniedError, match="TOOLD_READABLE_SECRETS"):
            await access.read_text(path)
        allowing = FileAccess((workspace,), secrets=(path,))
        assert (await allowing.read_text(path)).text
    secret.chmod(0o644)
    assert (await access.read_text("notes.txt")).text == "s3cret"
    assert (await access.read_text("shared/production")).text == "TOKEN=1"


async def test_a_client_directory_without_readable_files_is_reported(
    access: FileAccess, workspace: Path, write: Write
) -> None:
    """A client directory that is outside the roots or denied is reported.

    A directory that contains a root or is in one is accepted.
    """
    write("state/token", "x")
    (workspace / "link").symlink_to(workspace.parent / "elsewhere")
    for directory in (None, "", str(workspace), "src", str(workspace / "gone"), str(workspace.parent), "/"):
        assert await access.start_problem(directory, trusted=False) is None
    for directory in (str(workspace.parent / "elsewhere"), "../elsewhere", "link", str(workspace / "state"), "\ud800"):
        assert "they are refused; use a directory inside" in (
            await access.start_problem(directory, trusted=False) or ""
        )
    for directory in ("a\0b", "x" * 5_000):
        assert (
            await access.start_problem(directory, trusted=False)
            == "it is not a path, so relative paths start at the first workspace directory"
        )
    access.set_roots([workspace.parent / "elsewhere"])
    assert await access.start_problem("link", trusted=False) is None
    assert await access.start_problem(str(workspace), trusted=False) is not None


async def test_a_slow_disk_does_not_delay_the_directory_check(
    access: FileAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the check takes too long, the directory is accepted."""
    answers = threading.Event()
    monkeypatch.setattr(FileAccess, "_start_problem", lambda *_: answers.wait(10) or "late")
    monkeypatch.setattr("toold.tools.workspace_files._RESOLVE_TIMEOUT_S", 0.01)
    try:
        assert await access.start_problem("src", trusted=False) is None
    finally:
        answers.set()


async def test_every_spelling_of_a_path_reaches_the_file(access: FileAccess, write: Write) -> None:
    """Relative and absolute paths, paths with dots and links inside the root reach the same file."""
    path = write("docs/a.md", "hi")
    (path.parent.parent / "link.md").symlink_to("docs/a.md")
    (path.parent.parent / "linked").symlink_to(path.parent)
    for spelling in ("docs/a.md", str(path), "docs/../docs/./a.md", "link.md", "linked/a.md"):
        assert await access.read_text(spelling) == TextFile("docs/a.md", "hi")


async def test_every_root_may_be_read(tmp_path: Path) -> None:
    """Every root is readable; relative paths start at the first."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(name)
    access = FileAccess((tmp_path / "one", tmp_path / "two"))
    assert (await access.read_text("a.txt")).text == "one"
    assert (await access.read_text(str(tmp_path / "two" / "a.txt"))).text == "two"


async def test_a_root_can_be_a_link(tmp_path: Path, workspace: Path, write: Write) -> None:
    """Files are found by the path of the link and by the path of its target."""
    write("a.txt", "hi")
    (tmp_path / "alias").symlink_to(workspace)
    access = FileAccess((tmp_path / "alias",))
    for path in ("a.txt", str(tmp_path / "alias" / "a.txt"), str(workspace / "a.txt")):
        assert (await access.read_text(path)).text == "hi"


async def test_relative_paths_start_at_the_client_directory(access: FileAccess, workspace: Path, write: Write) -> None:
    """The directory that a client names is the start of its relative paths; a directory outside the roots permits no
    access."""
    write("sub/a.txt", "below")
    assert (await access.for_client(str(workspace / "sub"), trusted=False).read_text("a.txt")).text == "below"
    assert (await access.for_client(None, trusted=False).read_text("sub/a.txt")).text == "below"
    for outside in ("/", "..", str(workspace.parent)):
        with pytest.raises(PermissionDeniedError):
            await access.for_client(outside, trusted=False).read_text("secret.txt")
    with pytest.raises(PermissionDeniedError):
        await access.for_client(str(workspace / "sub"), trusted=False).read_text("../state/token")


async def test_the_directory_of_a_trusted_client_is_readable_if_the_operator_permits_it(
    workspace: Path, tmp_path: Path
) -> None:
    """Only with ``client_workspaces``, only for the client that names it, and without secrets and denied files."""
    folder = tmp_path / "folder"
    for name in ("a.txt", ".env", "toold.toml", ".ssh/config", "state/token"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("text")
    access = FileAccess((workspace,), denied=(folder / "state",), client_workspaces=True)
    client = access.for_client(str(folder), trusted=True)
    assert (await client.read_text("a.txt")).text == "text"
    assert await access.start_problem(str(folder), trusted=True) is None
    for refused, path in (
        (client, "toold.toml"),
        (client, ".env"),
        (client, "state/token"),
        (access.for_client(str(folder / ".ssh"), trusted=True), "config"),
        (access.for_client(str(folder), trusted=False), "a.txt"),
        (access.for_client(str(workspace), trusted=True), str(folder / "a.txt")),
        (FileAccess((workspace,)).for_client(str(folder), trusted=True), "a.txt"),
    ):
        with pytest.raises(PermissionDeniedError):
            await refused.read_text(path)


def test_a_client_directory_that_is_too_wide_is_no_root(tmp_path: Path) -> None:
    """The home directory, what contains it, and relative paths are not readable as a client's workspace."""
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    (tmp_path / "link").symlink_to(home)
    assert client_root(str(home / "project"), home) == home / "project"
    assert client_root("/srv", home) == Path("/srv")
    for wide in ("/", str(tmp_path), str(home), f"{home}/project/..", str(tmp_path / "link"), "project", "."):
        assert client_root(wide, home) is None


async def test_an_error_for_a_relative_path_says_where_it_starts(access: FileAccess, workspace: Path) -> None:
    """The error names the client's directory as the client named it, or the first workspace directory without its
    path."""
    (workspace / "sub").mkdir()
    elsewhere = access.for_client("/elsewhere", trusted=False)
    for there, error, start in (
        (access, NotFoundError, "the first workspace directory."),
        (access.for_client("sub", trusted=False), NotFoundError, "'sub', the directory that this client named."),
        (elsewhere, PermissionDeniedError, "'/elsewhere', the directory that this client named."),
    ):
        with pytest.raises(error) as caught:
            await there.read_text("nowhere.txt")
        assert caught.value.message.endswith(f". Relative paths start at {start}")
        assert str(workspace) not in caught.value.message
    with pytest.raises(NotFoundError, match=r"does not exist\.$"):
        await access.read_text(str(workspace / "nowhere.txt"))


@pytest.mark.parametrize("there", [True, False])
async def test_errors_do_not_reveal_files_outside_the_roots(access: FileAccess, secret: Path, there: bool) -> None:
    """The error for a path outside the roots is the same whether the file exists or not."""
    if not there:
        secret.unlink()
    for path in (str(secret), "../secret.txt", "x/../../secret.txt", "/", "/dev/null/..", ".."):
        with pytest.raises(PermissionDeniedError) as caught:
            await access.read_text(path)
        assert caught.value.message.removesuffix(" Relative paths start at the first workspace directory.") == (
            f"{path!r} is outside the directories that this daemon may read; name a file inside them. {HOW_TO_ALLOW}."
        )


@pytest.mark.parametrize("target", ["secret.txt", "nowhere.txt", ""])
async def test_a_link_out_of_the_roots_is_rejected(
    access: FileAccess, workspace: Path, secret: Path, target: str
) -> None:
    """Links are resolved before the check, so a link to a file or directory outside the roots is rejected."""
    (workspace / "way-out").symlink_to(secret.parent / target)
    for path in ("way-out", "way-out/secret.txt"):
        with pytest.raises(PermissionDeniedError):
            await access.read_text(path)


async def test_a_directory_with_a_root_as_name_prefix_is_outside(access: FileAccess, workspace: Path) -> None:
    """``workspace-2`` is not below ``workspace``."""
    sibling = workspace.with_name(workspace.name + "-2")
    sibling.mkdir()
    (sibling / "a.txt").write_text("no")
    with pytest.raises(PermissionDeniedError):
        await access.read_text(str(sibling / "a.txt"))


async def test_denied_files_are_never_read(access: FileAccess, workspace: Path, write: Write) -> None:
    """The state directory and the settings file are denied under every path, including links and hard links."""
    token, settings_file = write("state/token", "s3cret"), write("toold.toml", "key")
    (workspace / "link").symlink_to("state")
    os.link(settings_file, workspace / "second-name.toml")
    for path in ("state/token", str(token), "link/token", "state", "toold.toml", "second-name.toml", "state/nowhere"):
        with pytest.raises(PermissionDeniedError):
            await access.read_text(path)


async def test_a_link_created_after_the_check_is_not_followed(
    access: FileAccess, workspace: Path, secret: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file or directory that is replaced by a link between the check and the read is not read."""
    write("a.txt", "harmless")
    write("sub/note.txt", "harmless")
    (secret.parent / "note.txt").write_text("s3cret")
    result = {path: access._located(path) for path in ("a.txt", "sub/note.txt")}
    monkeypatch.setattr(access, "_located", result.__getitem__)
    (workspace / "a.txt").unlink()
    (workspace / "a.txt").symlink_to(secret)
    (workspace / "sub").rename(workspace / "moved")
    (workspace / "sub").symlink_to(secret.parent)
    for path in result:
        with pytest.raises(CallError) as caught:
            await access.read_text(path)
        assert "s3cret" not in caught.value.message


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


PARTS = st.sampled_from(
    ["..", ".", "", "a", "out", "in", "state", "loop", "workspace", "token", "secret.txt", "~", "\0"]
)


async def test_the_roots_can_be_changed(access: FileAccess, workspace: Path, write: Write, tmp_path: Path) -> None:
    """After the change only files in the new roots are readable; denied files stay denied."""
    write("file.txt", "old")
    write("below/file.txt", "new")
    write("state/token", "denied")
    access.set_roots([workspace / "below"])
    assert await access.read_text("file.txt") == TextFile("file.txt", "new")
    with pytest.raises(PermissionDeniedError):
        await access.read_text(str(workspace / "file.txt"))
    access.set_roots([workspace])
    with pytest.raises(PermissionDeniedError):
        await access.read_text("state/token")


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(path=st.text() | st.lists(PARTS | st.text(max_size=5), max_size=8).map("/".join))
async def test_no_path_escapes(access: FileAccess, workspace: Path, write: Write, secret: Path, path: str) -> None:
    """For any path, either a readable file in a root is read or an error is raised."""
    if not (workspace / "loop").is_symlink():
        for name, target in {"out": workspace.parent, "in": workspace / "a", "loop": workspace / "loop"}.items():
            (workspace / name).symlink_to(target)
        write("a/a", "inside")
        write("state/token", "denied")
    try:
        read = await access.read_text(path)
    except CallError:
        return
    assert read == TextFile("a/a", "inside")


def test_repr_shows_the_roots() -> None:
    """The repr of a FileAccess contains its roots."""
    assert repr(FileAccess(())) == "<FileAccess below nothing>"
