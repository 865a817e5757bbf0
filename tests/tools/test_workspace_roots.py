"""The directories whose files tools may read, and that no path leads out of them."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toold.protocol.error_codes import CallError, NotFoundError, PermissionDeniedError
from toold.tools import FileAccess
from toold.tools.workspace_files import (
    HOW_TO_ALLOW,
    TextFile,
    client_root,
)

Write = Callable[[str, str | bytes], Path]


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
