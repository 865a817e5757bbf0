"""Read-only access to the database, with and without a running daemon."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from toold.store import CallRow, Store, StoreError, open_archive
from toold.store.sqlite.store_schema import STEPS, open_database

MakeRow = Callable[..., CallRow]


async def test_archive_reads_while_the_daemon_runs(
    open_store: Callable[..., Store], row: MakeRow, database: Path
) -> None:
    """The last calls, all calls since a time, and the sums, while the store is open."""
    store = open_store()
    rows = [row(id=name, started_at=4e9 + number) for number, name in enumerate("abc")]
    for one in rows:
        store.audit.record(one)
    await store.flush()
    with open_archive(database) as archive:
        assert archive.recent(2) == [rows[2], rows[1]]
        later = list(archive.calls_since(4e9 + 1))
        assert [(item.seq, item.call) for item in later] == [(2, rows[1]), (3, rows[2])]
        assert [item.mac for item in later] == [mac for _, _, mac in archive.chained_rows()][1:]
        assert archive.totals().all.calls == 3
    await store.close()


async def test_journalled_calls_are_read_like_others(
    open_store: Callable[..., Store], call: Any, database: Path
) -> None:
    """While the daemon runs, the archive returns journalled calls that have ended and omits calls that still run."""
    store = open_store()
    assert await store.journal.start(call.starts("1"))
    assert await store.journal.start(call.starts("2"))
    await store.journal.end(call.ends("1"))
    with open_archive(database) as archive:
        assert [row.id for row in archive.recent(5)] == ["call-1"]
    await store.close()


def test_missing_database_raises(database: Path) -> None:
    """Opening the archive of a missing database raises an error and creates no file."""
    with pytest.raises(StoreError, match="first start creates one"), open_archive(database):
        pass
    assert not database.exists()


def test_older_schema_is_refused(database: Path) -> None:
    """The archive does not migrate an older schema; the error says how to migrate it."""
    open_database(database, STEPS[:1]).close()
    with pytest.raises(StoreError, match="start this toold's daemon once"), open_archive(database):
        pass


def test_newer_schema_is_refused(database: Path) -> None:
    """A database of a newer toold is not read."""
    open_database(database, (*STEPS, "CREATE TABLE newer (x)")).close()
    with pytest.raises(StoreError, match="install the newer toold again"), open_archive(database):
        pass


def test_invalid_database_file_raises(database: Path) -> None:
    """A file that is not a database raises ``StoreError``."""
    database.write_text("not a database, " * 100)
    with pytest.raises(StoreError), open_archive(database):
        pass
