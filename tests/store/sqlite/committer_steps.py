"""Steps of the committer's tests."""

import concurrent.futures
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from toold.store import CallRow
from toold.store.commit_entries import CommitItem, Entry
from toold.store.sqlite.committer import SqliteCommitter

Call = Any  # conftest.Journalled


MakeRow = Callable[..., CallRow]


OpenCommitter = Callable[[], SqliteCommitter]


def commit_item(entry: Entry) -> CommitItem:
    return CommitItem(entry, done=concurrent.futures.Future())


def attempt(committer: SqliteCommitter, *items: CommitItem) -> None:
    for item in items:
        committer.add(item)
    committer.attempt()


def result(item: CommitItem) -> bool:
    assert item.done
    return item.done.result(0)


def crash(committer: SqliteCommitter) -> None:
    """Ends its connection without a last commit."""
    assert committer._connection
    committer._connection.close()


def read(database: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(query).fetchall()


JOURNAL = "SELECT request_key, state FROM journal ORDER BY 1"


CALLS = "SELECT id, outcome, arguments FROM call ORDER BY seq"
