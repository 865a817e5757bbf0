"""The database's files are accessible to their owner only; removed or replaced files are detected."""

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from toold.store.sqlite.database_files import OpenedFiles, restrict_to_owner
from toold.store.sqlite.store_schema import open_database

SUFFIXES = ["", "-wal", "-shm"]


@pytest.fixture
def opened(database: Path) -> Iterator[OpenedFiles]:
    with closing(open_database(database)):
        yield OpenedFiles(database)


def modes(database: Path) -> list[int]:
    return [stat.S_IMODE(path.stat().st_mode) for path in sorted(database.parent.glob("toold.db*"))]


def test_accessible_files_are_restricted(database: Path) -> None:
    """Accessible files are restricted to their owner and logged once."""
    with closing(open_database(database)):
        for suffix in SUFFIXES:
            database.with_name(f"toold.db{suffix}").chmod(0o644)
        with capture_logs() as lines:
            restrict_to_owner(database)
            restrict_to_owner(database)
        assert modes(database) == [0o600] * 3
    assert [Path(line["path"]).name for line in lines] == [f"toold.db{suffix}" for suffix in SUFFIXES]


def test_unchanged_files_are_not_missing(opened: OpenedFiles) -> None:
    """No file is reported as missing while the files are unchanged."""
    assert opened.missing() is None


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_removed_file_is_missing(opened: OpenedFiles, database: Path, suffix: str) -> None:
    """The removal of any of the three files is reported."""
    path = database.with_name(f"toold.db{suffix}")
    path.unlink()
    assert opened.missing() == path


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_replaced_file_is_missing(opened: OpenedFiles, database: Path, suffix: str) -> None:
    """A replaced file is reported until the original is restored."""
    path = database.with_name(f"toold.db{suffix}")
    stored = path.rename(path.with_name("kept"))
    path.write_bytes(stored.read_bytes())
    assert opened.missing() == path
    stored.replace(path)
    assert opened.missing() is None


def test_moved_directory_is_missing(opened: OpenedFiles, database: Path) -> None:
    """If the directory was moved, the database is reported as missing."""
    directory = database.parent
    moved = directory.rename(directory.with_name(f"{directory.name}-moved"))
    assert opened.missing() == database
    os.replace(moved, directory)  # noqa: PTH105 - pytest removes it there
