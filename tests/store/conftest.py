"""A store in a temporary directory, and rows to write."""

import functools
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.postgres_cluster import Cluster
from tests.store.postgres_databases import PostgresDatabase, migrated_template, new_database
from tests.store.sqlite.committer_steps import OpenCommitter
from toold.protocol.tool_call import ModelUsage
from toold.store import CallEnd, CallRow, CallStart, Retention, SessionRow, Store, StoredCall, open_sqlite_store
from toold.store.sqlite.chain_writer import ChainWriter
from toold.store.sqlite.committer import SqliteCommitter
from toold.store.sqlite.store_schema import open_database

MakeRow = Callable[..., CallRow]


class Journalled:
    """One call of the session ``s-1`` as the journal sees it, and its session."""

    def __init__(self, row: MakeRow) -> None:
        self._row = row
        self.session = SessionRow(
            id="s-1", key_hash=b"key", principal="local", label="l", toolset="standard", opened_at=time.time()
        )

    def starts(self, key: str = "1", **fields: Any) -> CallStart:
        row = self._row(id=f"call-{key}", tool="chat", outcome="OUTCOME_UNKNOWN", **fields)
        return CallStart(session_id="s-1", request_key=key, echo_id=False, arguments_hash=b"hash", row=row)

    def ends(
        self, key: str = "1", result: bytes | None = b"{}", usage_by_model: tuple[ModelUsage, ...] = (), **fields: Any
    ) -> CallEnd:
        row = self._row(id=f"call-{key}", tool="chat", **fields)
        return CallEnd(
            session_id="s-1", request_key=key, result=result, at=time.time(), row=row, usage_by_model=usage_by_model
        )

    def local(self, key: str = "1", result: bytes = b"{}") -> StoredCall:
        return StoredCall(
            session_id="s-1",
            request_key=key,
            echo_id=False,
            tool="echo",
            arguments_hash=b"hash",
            local=True,
            state="done",
            result=result,
            at=time.time(),
        )


@pytest.fixture
def call(row: MakeRow) -> Journalled:
    """The journal entries of a call."""
    return Journalled(row)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "toold.db"


@pytest.fixture
def connection(database: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a new database."""
    with closing(open_database(database)) as connection:
        yield connection


@pytest.fixture
def chain_writer(audit_key: bytes) -> ChainWriter:
    return ChainWriter(audit_key)


@pytest.fixture
def open_store(database: Path, audit_key: bytes) -> Callable[..., Store]:
    """A function that opens a store on ``database``. The caller closes the store."""

    def make(retention: Retention | None = None) -> Store:
        return open_sqlite_store(database, content=json.dumps, retention=retention or Retention(), key=audit_key)

    return make


@pytest.fixture
def open_committer(database: Path, audit_key: bytes, monkeypatch: pytest.MonkeyPatch) -> OpenCommitter:
    """A function that opens a committer on ``database`` that does not wait for locks."""
    connect = functools.partial(sqlite3.connect, timeout=0)
    monkeypatch.setattr(sqlite3, "connect", connect)
    return lambda: SqliteCommitter(database, content=json.dumps, retention=Retention(), key=audit_key)


@pytest.fixture
def committer(open_committer: OpenCommitter) -> Iterator[SqliteCommitter]:
    committer = open_committer()
    yield committer
    committer.close()


@pytest.fixture(scope="session")
def postgres_template(cluster: Cluster) -> str:
    """A migrated database of the cluster, of which tests get copies."""
    return migrated_template(cluster)


@pytest.fixture
def postgres_database(cluster: Cluster, postgres_template: str) -> Iterator[PostgresDatabase]:
    """A migrated database without rows."""
    with new_database(cluster, postgres_template) as database:
        yield database
