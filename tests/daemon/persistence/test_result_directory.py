"""The directory of result files: atomic writes, private permissions, limits, and tombstones of deleted results."""

import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from toold.daemon.persistence.result_directory import ResultDirectory
from toold.store import TOMBSTONE_TTL_S, ResultDeletedError, ResultSizeError, ResultUnknownError

MakeDirectory = Callable[..., ResultDirectory]


@pytest.fixture
def make(tmp_path: Path) -> MakeDirectory:
    """Open the test's directory as the daemon does at its start."""
    return lambda ttl_s=60.0, max_bytes=100: ResultDirectory(tmp_path / "results", ttl_s=ttl_s, max_bytes=max_bytes)


def files(tmp_path: Path) -> dict[str, int]:
    """The files in the directory with their sizes."""
    return {
        path.relative_to(tmp_path / "results").as_posix(): path.stat().st_size
        for path in sorted((tmp_path / "results").glob("*/*"))
    }


def test_file_is_readable_by_its_owner_only(make: MakeDirectory, tmp_path: Path) -> None:
    """Files and directories are private, independent of the process's umask."""
    before = os.umask(0)
    try:
        assert make().write("local", "e1-2", "json", [b"[1,", b"2]"], 5.0) == 5
    finally:
        os.umask(before)
    path = tmp_path / "results" / "local" / "e1-2.json"
    assert path.read_bytes() == b"[1,2]"
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)


def test_result_survives_a_restart(make: MakeDirectory) -> None:
    """A result is read from the disk after a restart."""
    now = time.time()
    make().write("local", "e1-2", "csv", [b"a\n1\n"], now)
    assert make().read("local", "e1-2", now) == ("csv", b"a\n1\n")


@pytest.mark.parametrize("other", ["Local", "somebody", "../local", "local/..", "", "x" * 300, "\ud800"])
def test_handle_is_bound_to_its_principal(make: MakeDirectory, tmp_path: Path, other: str) -> None:
    """No principal's name gives access to another principal's files or to a place outside the directory."""
    directory = make()
    directory.write("local", "e1-2", "json", [b"1"], 5.0)
    with pytest.raises(ResultUnknownError):
        directory.read(other, "e1-2", 5.0)
    directory.write(other, "e1-2", "json", [b"2"], 5.0)
    assert directory.read("local", "e1-2", 5.0) == ("json", b"1")
    assert {path.parent.parent for path in tmp_path.rglob("*.json")} == {tmp_path / "results"}


@pytest.mark.parametrize("handle", ["../../token", "e1-2/step#2", "x" * 400, "a/b", "a-b", "A-B", "a.json", ""])
def test_no_two_handles_share_a_file(make: MakeDirectory, tmp_path: Path, handle: str) -> None:
    """Each handle has its own file inside the directory, whatever characters it contains."""
    directory = make()
    for other in ("a-b", "e1-2"):
        if other != handle:
            directory.write("local", other, "json", [b"other"], 5.0)
    directory.write("local", handle, "json", [b"this"], 5.0)
    assert directory.read("local", handle, 5.0) == ("json", b"this")
    assert {path.parent for path in tmp_path.rglob("*.json")} == {tmp_path / "results" / "local"}


def test_result_expires_and_its_tombstone_too(make: MakeDirectory, tmp_path: Path) -> None:
    """An expired result is refused at once, deleted at the next cleanup, and known as deleted for seven days."""
    directory, now = make(ttl_s=60), time.time()
    directory.write("local", "e1-2", "json", [b"1"], now)
    with pytest.raises(ResultDeletedError):
        directory.read("local", "e1-2", now + 61)
    directory.delete_expired(now + 61)
    assert files(tmp_path) == {"local/e1-2.gone": 0}
    with pytest.raises(ResultDeletedError):
        make().read("local", "e1-2", now + 61)
    directory.delete_expired(now + TOMBSTONE_TTL_S + 62)
    with pytest.raises(ResultUnknownError):
        directory.read("local", "e1-2", now)


def test_oldest_files_are_deleted_beyond_the_size_limit(make: MakeDirectory, tmp_path: Path) -> None:
    """The size limit applies to the files of all principals; a lowered limit applies at the next cleanup."""
    directory = make(max_bytes=10)
    for at, (principal, handle) in enumerate((("local", "a"), ("ann", "b"), ("local", "c"))):
        directory.write(principal, handle, "json", [b"xxxx"], float(at))
    assert files(tmp_path) == {"ann/b.json": 4, "local/a.gone": 0, "local/c.json": 4}
    directory.max_bytes = 5
    directory.delete_expired(3.0)
    assert files(tmp_path) == {"ann/b.gone": 0, "local/a.gone": 0, "local/c.json": 4}


def test_principals_do_not_displace_each_others_files(make: MakeDirectory, tmp_path: Path) -> None:
    """Beyond the limit, the principal with the most bytes loses its oldest files, also after a restart."""
    directory = make(max_bytes=10)
    directory.write("ann", "old", "json", [b"xx"], 0.0)
    for at in range(1, 6):
        directory.write("local", str(at), "json", [b"xxxx"], float(at))
    stored = {"ann/old.json": 2, "local/4.json": 4, "local/5.json": 4}
    assert {name: size for name, size in files(tmp_path).items() if size} == stored
    for name, size in stored.items():
        os.utime(tmp_path / "results" / name, (9.0 - size, 9.0 - size))
    make(max_bytes=10).write("bob", "new", "json", [b"xxxxxxxx"], 9.0)
    assert {name: size for name, size in files(tmp_path).items() if size} == {"ann/old.json": 2, "bob/new.json": 8}


def test_too_large_result_changes_nothing(make: MakeDirectory, tmp_path: Path) -> None:
    """A result over the limit is refused while it is written, before other files are deleted."""
    directory = make(max_bytes=10)
    directory.write("local", "a", "json", [b"xxxx"], 1.0)
    requests = []

    def pieces() -> Iterator[bytes]:
        for number in range(100):
            requests.append(number)
            yield b"yyyy"

    with pytest.raises(ResultSizeError):
        directory.write("local", "b", "json", pieces(), 2.0)
    assert len(requests) == 3
    assert files(tmp_path) == {"local/a.json": 4}


def test_failed_write_leaves_no_file(make: MakeDirectory, tmp_path: Path) -> None:
    """A failed write leaves no file; files that a crash left are removed at the next start."""
    directory = make()

    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        directory.write("local", "a", "json", pieces(), 1.0)
    assert files(tmp_path) == {}
    (tmp_path / "results" / "local" / "b.new").write_bytes(b"half")
    make().delete_expired(1.0)
    assert files(tmp_path) == {}


def test_handle_can_be_rewritten_in_another_format(make: MakeDirectory, tmp_path: Path) -> None:
    """A handle has one result, which a later write replaces."""
    directory = make()
    directory.write("local", "a", "json", [b"[]"], 1.0)
    directory.write("local", "a", "csv", [b"x\n"], 2.0)
    assert directory.read("local", "a", 2.0) == ("csv", b"x\n")
    assert not (tmp_path / "results" / "local" / "a.json").exists()


def test_file_removed_by_another_program_is_deleted(make: MakeDirectory, tmp_path: Path) -> None:
    """A file that another program removed counts as deleted."""
    directory = make()
    directory.write("local", "a", "json", [b"[]"], 1.0)
    (tmp_path / "results" / "local" / "a.json").unlink()
    with pytest.raises(ResultDeletedError):
        directory.read("local", "a", 1.0)
