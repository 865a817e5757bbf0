"""A commit is atomic and keeps the order of its entries."""

import contextlib
import sqlite3
from typing import Any

import pytest
from toold.store import CallEnd, SettledCalls
from toold.store.audit_rows import audit_values
from toold.store.commit_entries import (
    CommitItem,
    DaemonRestarted,
    Entry,
    LocalResults,
    ResultsAcknowledged,
    SessionClosed,
    SessionsSeen,
)
from toold.store.sqlite import audit_sql
from toold.store.sqlite.chain_writer import ChainWriter
from toold.store.sqlite.commit_group import write
from toold.store.sqlite.store_schema import transaction

Call = Any  # conftest.Journalled
NO_LIMIT_BYTES = 2**30


def item(entry: Entry) -> CommitItem:
    return CommitItem(entry, row=audit_values(entry.row, None) if isinstance(entry, CallEnd) else None)


def states(connection: sqlite3.Connection) -> dict[str, str]:
    return dict(connection.execute("SELECT request_key, state FROM journal"))


def count(connection: sqlite3.Connection, table: str) -> int:
    (rows,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - our own names
    return int(rows)


def test_transaction_rolls_back_on_error(connection: sqlite3.Connection) -> None:
    """Changes before the error are undone, and the connection stays usable."""
    for _ in range(2):
        with contextlib.suppress(LookupError), transaction(connection):
            connection.execute("INSERT INTO outbox VALUES (1, 0, 0, 0, 0, NULL)")
            raise LookupError
    assert count(connection, "outbox") == 0
    assert not connection.in_transaction


def test_result_and_audit_row_are_atomic(connection: sqlite3.Connection, chain_writer: ChainWriter, call: Call) -> None:
    """If the audit row cannot be written, the call has not ended; a later write stores both."""
    write(
        connection,
        [CommitItem(call.session), CommitItem(call.starts())],
        chain_writer,
        rows_dropped=0,
        results_bytes=NO_LIMIT_BYTES,
    )
    ended = item(call.ends(result=b"[1]"))
    assert ended.row
    whole = ended.row
    ended.row = (2**70, *whole[1:])
    with pytest.raises(OverflowError):
        write(connection, [ended], chain_writer, rows_dropped=0, results_bytes=NO_LIMIT_BYTES)
    assert (states(connection), count(connection, "call")) == ({"1": "started"}, 0)
    ended.row = whole
    write(connection, [ended], chain_writer, rows_dropped=0, results_bytes=NO_LIMIT_BYTES)
    assert (states(connection), count(connection, "call")) == ({"1": "done"}, 1)


def test_each_start_gets_its_own_answer(connection: sqlite3.Connection, chain_writer: ChainWriter, call: Call) -> None:
    """Each start in a group gets its own answer."""
    write(connection, [CommitItem(call.starts("1"))], chain_writer, rows_dropped=0, results_bytes=NO_LIMIT_BYTES)
    items = [CommitItem(call.session), CommitItem(call.starts("1")), item(call.ends("1")), CommitItem(call.starts("2"))]
    write(connection, items, chain_writer, rows_dropped=0, results_bytes=NO_LIMIT_BYTES)
    assert [item.accepted for item in items] == [True, False, True, True]


def test_entries_are_written_in_order(connection: sqlite3.Connection, chain_writer: ChainWriter, call: Call) -> None:
    """One group applies the entries of a session, its calls and a reused id in order."""
    group = [
        CommitItem(call.session),
        CommitItem(LocalResults([call.local("local")])),
        CommitItem(call.starts("a")),
        CommitItem(call.starts("b")),
        item(call.ends("a")),
        CommitItem(ResultsAcknowledged("s-1", ["a", "local"])),
        CommitItem(call.starts("local")),
        item(call.ends("b")),
    ]
    write(connection, group, chain_writer, rows_dropped=0, results_bytes=NO_LIMIT_BYTES)
    assert [item.accepted for item in group] == [True] * len(group)
    assert states(connection) == {"a": "expired", "b": "done", "local": "started"}
    write(
        connection,
        [item(call.ends("local")), CommitItem(SessionClosed("s-1"))],
        chain_writer,
        rows_dropped=0,
        results_bytes=NO_LIMIT_BYTES,
    )
    assert (states(connection), count(connection, "session")) == ({}, 0)


def test_rows_are_numbered_in_order(connection: sqlite3.Connection, chain_writer: ChainWriter, call: Call) -> None:
    """Rows of journalled calls and other rows share one sequence of numbers."""
    group = [
        item(call.ends("a")),
        CommitItem(None, row=audit_values(call.ends("b").row, None)),
        item(call.ends("c")),
    ]
    write(
        connection,
        [*group, CommitItem(SettledCalls(up_to=1, at=1.0, sent=1))],
        chain_writer,
        rows_dropped=0,
        results_bytes=NO_LIMIT_BYTES,
    )
    assert [row.id for row in audit_sql.recent(connection, 5)] == ["call-c", "call-b", "call-a"]
    assert count(connection, "outbox") == 1


def test_results_limit_is_enforced_in_the_commit(
    connection: sqlite3.Connection, chain_writer: ChainWriter, call: Call
) -> None:
    """Beyond the limit, the commit of a new result deletes the oldest results, including local ones."""
    group = [
        CommitItem(call.session),
        CommitItem(call.starts("1")),
        CommitItem(call.starts("2")),
        item(call.ends("1", b"123")),
    ]
    write(connection, group, chain_writer, rows_dropped=0, results_bytes=4)
    write(connection, [item(call.ends("2", b"12"))], chain_writer, rows_dropped=0, results_bytes=4)
    assert states(connection) == {"1": "expired", "2": "done"}
    write(
        connection,
        [CommitItem(LocalResults([call.local("3", b"1234")]))],
        chain_writer,
        rows_dropped=0,
        results_bytes=4,
    )
    assert states(connection) == {"1": "expired", "2": "expired", "3": "done"}


def test_restart_deletes_orphaned_calls_only(
    connection: sqlite3.Connection, chain_writer: ChainWriter, call: Call
) -> None:
    """Seen sessions and their calls survive a restart; calls without a session are deleted."""
    write(
        connection,
        [CommitItem(call.starts()), item(call.ends())],
        chain_writer,
        rows_dropped=0,
        results_bytes=NO_LIMIT_BYTES,
    )
    write(
        connection,
        [CommitItem(DaemonRestarted()), CommitItem(call.session), CommitItem(SessionsSeen(["s-1"], 9e9))],
        chain_writer,
        rows_dropped=0,
        results_bytes=NO_LIMIT_BYTES,
    )
    assert (states(connection), count(connection, "session")) == ({}, 1)
    write(
        connection,
        [CommitItem(call.starts()), item(call.ends()), CommitItem(DaemonRestarted())],
        chain_writer,
        rows_dropped=0,
        results_bytes=NO_LIMIT_BYTES,
    )
    assert states(connection) == {"1": "done"}


def test_awaited_entries_are_durable(call: Call) -> None:
    """Commits with awaited entries are synced; commits with audit rows only are not."""
    assert all(CommitItem(entry).durable for entry in (call.starts(), call.ends(), LocalResults([])))
    assert not any(
        CommitItem(entry).durable for entry in (None, call.session, SessionClosed("s"), SettledCalls(up_to=1, at=1.0))
    )
