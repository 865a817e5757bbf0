"""The size limit of the database, which the committer enforces."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.store.sqlite.committer_steps import MakeRow, attempt, read
from toold.store import Retention
from toold.store.commit_entries import CommitItem
from toold.store.sqlite.audit_sql import stored_bytes
from toold.store.sqlite.committer import SqliteCommitter
from toold.store.sqlite.retention_sql import enforce_retention


def test_size_limit_is_enforced_between_hourly_runs(
    committer: SqliteCommitter, row: MakeRow, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many rows at once exceed the limit by at most a sixteenth."""
    looks: list[bool] = []

    def note(*value: Any) -> bool:
        looks.append(enforce_retention(*value))
        return looks[-1]

    monkeypatch.setattr("toold.store.sqlite.committer.enforce_retention", note)
    bound = 200_000
    committer.apply(json.dumps, Retention(bytes=bound))
    attempt(committer)
    assert len(looks) == 1
    most = 0
    for group in range(80):
        attempt(
            committer, *(CommitItem(row(id=f"{group}-{number}", arguments={"text": "x" * 1000})) for number in range(5))
        )
        with closing(sqlite3.connect(database)) as connection:
            most = max(most, stored_bytes(connection))
    assert bound / 2 < most <= bound * 17 / 16
    assert 1 < len(looks) < 40  # fewer than the 80 commits


@pytest.mark.parametrize("patience_s", [60.0, 0.0], ids=["at once", "later"])
def test_size_limit_is_enforced_for_large_groups(
    committer: SqliteCommitter, row: MakeRow, monkeypatch: pytest.MonkeyPatch, patience_s: float
) -> None:
    """After a group larger than a slice, retention deletes several slices, or continues after the next commit if it
    is slow."""
    monkeypatch.setattr("toold.store.sqlite.committer.MAX_RETENTION_S", patience_s)
    monkeypatch.setattr("toold.store.sqlite.audit_sql.SLICE", 10)
    bound = 20_000
    committer.apply(json.dumps, Retention(bytes=bound))
    sizes = []
    assert committer._connection
    for group in range(20):
        attempt(committer, *(CommitItem(row(id=f"{group}-{number}")) for number in range(30)))
        sizes.append(stored_bytes(committer._connection))
    monkeypatch.setattr("toold.store.sqlite.committer.MAX_RETENTION_S", 60.0)
    attempt(committer, CommitItem(row()))
    assert stored_bytes(committer._connection) <= bound * 17 / 16
    assert (max(sizes) <= bound * 17 / 16) is bool(patience_s)


def test_lowered_size_limit_is_reached_slice_by_slice(
    committer: SqliteCommitter, row: MakeRow, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One commit deletes at most the number of rows that it added plus one slice."""
    monkeypatch.setattr("toold.store.sqlite.audit_sql.SLICE", 10)
    attempt(committer, *(CommitItem(row()) for _ in range(300)))
    committer.apply(json.dumps, Retention(bytes=1))
    left = []
    for _ in range(3):
        attempt(committer, *(CommitItem(row()) for _ in range(5)))
        left.append(len(read(database, "SELECT seq FROM call")))
    assert left == [295, 290, 285]
