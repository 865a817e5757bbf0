"""All limits on stored data together, enforced one slice at a time."""

import sqlite3
import time
from pathlib import Path
from typing import Any

from toold.store import Retention
from toold.store.audit_rows import audit_values
from toold.store.commit_entries import CommitItem
from toold.store.sqlite import audit_sql
from toold.store.sqlite.chain_writer import ChainWriter
from toold.store.sqlite.commit_group import write
from toold.store.sqlite.retention_sql import enforce_retention
from toold.store.store_clock import StoreClock

Call = Any  # conftest.Journalled
NO_LIMIT_BYTES = 2**30


def test_full_slice_means_more_to_delete(connection: sqlite3.Connection, chain_writer: ChainWriter, call: Call) -> None:
    """One step deletes both results and rows, and returns whether another step is necessary."""
    row = audit_values(call.ends(started_at=1.0).row, None)
    write(
        connection,
        [CommitItem(None, row=row) for _ in range(audit_sql.SLICE + 1)],
        chain_writer,
        rows_dropped=0,
        results_bytes=NO_LIMIT_BYTES,
    )
    write(
        connection,
        [CommitItem(call.session), CommitItem(call.starts()), CommitItem(call.ends())],
        chain_writer,
        rows_dropped=0,
        results_bytes=NO_LIMIT_BYTES,
    )
    later = time.time() + 1.5 * 86400
    assert enforce_retention(connection, chain_writer, Retention(days=30), later, StoreClock(later))
    assert not enforce_retention(connection, chain_writer, Retention(days=30), later, StoreClock(later))
    assert audit_sql.recent(connection, 5) == []
    assert connection.execute("SELECT state FROM journal").fetchall() == [("expired",)]


def test_results_do_not_displace_audit_rows(
    connection: sqlite3.Connection, chain_writer: ChainWriter, call: Call
) -> None:
    """Results have a separate limit: large results do not displace audit rows."""
    row = audit_values(call.ends().row, None)
    group = [
        CommitItem(call.session),
        CommitItem(call.starts()),
        CommitItem(call.ends(result=b"x" * 10_000_000)),
        CommitItem(None, row=row),
    ]
    write(connection, group, chain_writer, rows_dropped=0, results_bytes=NO_LIMIT_BYTES)
    enforce_retention(connection, chain_writer, Retention(bytes=1_000_000), time.time(), StoreClock(time.time()))
    assert len(audit_sql.recent(connection, 5)) == 1
    enforce_retention(connection, chain_writer, Retention(bytes=100), time.time(), StoreClock(time.time()))
    assert audit_sql.recent(connection, 5) == []


def test_stored_ids_do_not_displace_audit_rows(
    connection: sqlite3.Connection, chain_writer: ChainWriter, call: Call
) -> None:
    """Ids in the journal keep their time to live and do not displace audit rows."""
    keys = [str(number) for number in range(3000)]
    write(connection, [CommitItem(call.session)], chain_writer, rows_dropped=0, results_bytes=NO_LIMIT_BYTES)
    write(
        connection,
        [CommitItem(call.starts(key)) for key in keys],
        chain_writer,
        rows_dropped=0,
        results_bytes=NO_LIMIT_BYTES,
    )
    write(
        connection,
        [CommitItem(call.ends(key, None)) for key in keys],
        chain_writer,
        rows_dropped=0,
        results_bytes=NO_LIMIT_BYTES,
    )
    row = audit_values(call.ends().row, None)
    write(
        connection,
        [CommitItem(None, row=row) for _ in range(10)],
        chain_writer,
        rows_dropped=0,
        results_bytes=NO_LIMIT_BYTES,
    )
    assert not enforce_retention(
        connection, chain_writer, Retention(bytes=10_000), time.time(), StoreClock(time.time())
    )
    assert len(audit_sql.recent(connection, 20)) == 10


def test_file_shrinks_after_results_are_deleted(
    connection: sqlite3.Connection, chain_writer: ChainWriter, call: Call, database: Path
) -> None:
    """The space of deleted results is returned to the disk."""
    group = [CommitItem(call.session), CommitItem(call.starts()), CommitItem(call.ends(result=b"x" * 1_000_000))]
    write(connection, group, chain_writer, rows_dropped=0, results_bytes=NO_LIMIT_BYTES)
    (before,) = connection.execute("PRAGMA page_count").fetchone()
    enforce_retention(
        connection, chain_writer, Retention(result_ttl_s=0.0), time.time() + 1, StoreClock(time.time() + 1)
    )
    (after,) = connection.execute("PRAGMA page_count").fetchone()
    assert after < before / 2
