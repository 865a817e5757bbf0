"""The outbox knows the unsent rows across restarts, retention and refused rows, and uses no number twice."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from toold.store import KEY_BYTES, AuditOutboxState, CallRow, SettledCalls, Store
from toold.store.audit_rows import COLUMNS, audit_values
from toold.store.sqlite import audit_outbox, audit_sql
from toold.store.sqlite.chain_writer import ChainWriter
from toold.store.sqlite.store_schema import STEPS, open_database

MakeRow = Callable[..., CallRow]
KEY = b"k" * KEY_BYTES


def add(connection: sqlite3.Connection, *rows: CallRow) -> None:
    with ChainWriter(KEY).extending(connection) as chain:
        audit_sql.add(connection, chain, [audit_values(row, None) for row in rows])


def forget(connection: sqlite3.Connection, *, before: float = 2.0) -> int:
    with ChainWriter(KEY).extending(connection) as chain:
        return audit_sql.delete_expired(connection, chain, before=before, now=1e9, max_bytes=2**40)


def seqs(connection: sqlite3.Connection, after: int, limit: int = 100) -> list[int]:
    return [row.seq for row in audit_outbox.unsent(connection, after, limit)]


def test_empty_outbox_has_no_backlog(connection: sqlite3.Connection) -> None:
    """Before the first call there is nothing to send."""
    nothing = AuditOutboxState(settled_seq=0, backlog=0, sent=0, refused=0, dropped=0, last_sent_at=None)
    assert audit_outbox.state(connection) == nothing
    assert audit_outbox.unsent(connection, 0, 10) == []


def test_unsent_calls_are_returned_oldest_first(connection: sqlite3.Connection, row: MakeRow) -> None:
    """A batch contains the oldest complete calls after a seq, up to the requested number."""
    rows = [row(id=name, simulated=True) for name in "abcde"]
    add(connection, *rows)
    result = audit_outbox.unsent(connection, 1, 3)
    assert [(item.seq, item.call) for item in result] == [(2, rows[1]), (3, rows[2]), (4, rows[3])]
    assert len({item.mac for item in result}) == 3


def test_settling_counts(connection: sqlite3.Connection, row: MakeRow) -> None:
    """Sent, refused and dropped calls are counted; the backlog is the number of calls after them."""
    add(connection, *(row(id=str(number)) for number in range(10)))
    audit_outbox.settle(
        connection, [SettledCalls(up_to=3, at=10.0, sent=2, refused={2: "no"}), SettledCalls(up_to=4, at=11.0, sent=1)]
    )
    audit_outbox.settle(connection, [SettledCalls(up_to=6, at=12.0, dropped=2)])
    assert audit_outbox.state(connection) == AuditOutboxState(
        settled_seq=6, backlog=4, sent=3, refused=1, dropped=2, last_sent_at=11.0
    )
    assert connection.execute("SELECT * FROM refused").fetchall() == [(2, "no", 10.0)]


def test_settled_seq_never_decreases(connection: sqlite3.Connection, row: MakeRow) -> None:
    """A settlement of older calls that arrives late does not make newer calls unsent again."""
    add(connection, *(row(id=str(number)) for number in range(5)))
    audit_outbox.settle(connection, [SettledCalls(up_to=4, at=1.0, sent=4), SettledCalls(up_to=2, at=1.0)])
    assert audit_outbox.state(connection).settled_seq == 4


def test_settling_is_atomic(connection: sqlite3.Connection) -> None:
    """If one part cannot be written, no part is."""
    bad = SettledCalls(up_to=2, at=1.0, refused={2**70: "x"})
    with pytest.raises(OverflowError), ChainWriter(KEY).extending(connection):
        audit_outbox.settle(connection, [SettledCalls(up_to=1, at=1.0, sent=1), bad])
    assert audit_outbox.state(connection).sent == 0
    audit_outbox.settle(connection, [SettledCalls(up_to=1, at=1.0, sent=1)])


def test_seqs_are_not_reused(connection: sqlite3.Connection, row: MakeRow) -> None:
    """After retention has deleted every call, the next call gets a new number and counts as unsent."""
    add(connection, row(started_at=1.0), row(started_at=1.0))
    audit_outbox.settle(connection, [SettledCalls(up_to=2, at=1.0, sent=2)])
    assert forget(connection) == 2
    add(connection, row(id="new"))
    assert seqs(connection, after=2) == [3]
    assert audit_outbox.state(connection).backlog == 1


def test_rows_deleted_before_the_first_sending_do_not_count_as_dropped(
    connection: sqlite3.Connection, row: MakeRow
) -> None:
    """If nothing was ever sent, the outbox begins with the oldest stored call."""
    add(connection, row(started_at=1.0), row(started_at=5.0), row(started_at=5.0))
    forget(connection)
    state = audit_outbox.state(connection)
    assert (state.settled_seq, state.backlog) == (1, 2)


def test_backlog_excludes_deleted_rows(connection: sqlite3.Connection, row: MakeRow) -> None:
    """Deleted unsent calls do not count in the backlog; they leave a gap in the numbers."""
    add(connection, *(row(started_at=float(number)) for number in range(1, 6)))
    audit_outbox.settle(connection, [SettledCalls(up_to=1, at=1.0, sent=1)])
    forget(connection, before=4.0)
    assert audit_outbox.state(connection).backlog == 2
    assert seqs(connection, after=1) == [4, 5]


def test_refusals_are_deleted_with_their_calls(connection: sqlite3.Connection, row: MakeRow) -> None:
    """Retention deletes a call together with the reason of its refusal; the count stays."""
    add(connection, row(started_at=1.0), row(started_at=5.0))
    audit_outbox.settle(connection, [SettledCalls(up_to=2, at=1.0, refused={1: "old", 2: "new"})])
    forget(connection)
    assert connection.execute("SELECT seq, reason FROM refused").fetchall() == [(2, "new")]
    assert audit_outbox.state(connection).refused == 2


def test_calls_of_schema_1_are_unsent(database: Path, row: MakeRow) -> None:
    """A migrated database without an outbox keeps its calls, which all count as unsent."""
    with closing(open_database(database, STEPS[:1])) as connection:
        connection.execute(
            f"INSERT INTO call ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})",  # noqa: S608 - our own names
            audit_values(row(id="old"), None),
        )
    with closing(open_database(database)) as connection:
        assert [(item.call.id, item.mac) for item in audit_outbox.unsent(connection, 0, 10)] == [("old", None)]
        assert audit_outbox.state(connection).backlog == 1
    assert database.with_name("toold.db.v1.bak").exists()


async def test_store_persists_settled_calls(open_store: Callable[..., Store], row: MakeRow) -> None:
    """Settled calls are written by the store and known at the next start."""
    store = open_store()
    for name in "abc":
        store.audit.record(row(id=name))
    await store.flush()
    store.audit.settle(SettledCalls(up_to=2, at=1.0, sent=2))
    await store.flush()
    assert [unsent_call.call.id for unsent_call in await store.audit.unsent_calls(2, 10)] == ["c"]
    await store.close()
    reopened = open_store()
    assert (await reopened.audit.outbox_state()).settled_seq == 2
    await reopened.close()


async def test_settling_survives_a_locked_file(
    open_store: Callable[..., Store], row: MakeRow, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settlements wait while the database is locked and are written afterwards."""
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **options: connect(*args, **{"timeout": 0, **options}))
    store = open_store()
    store.audit.record(row())
    await store.flush()
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        store.audit.settle(SettledCalls(up_to=1, at=1.0, sent=1))
        await store.flush()
        assert store.problem
        other.execute("ROLLBACK")
    await store.flush()
    assert (await store.audit.outbox_state()).sent == 1
    assert not store.problem
    await store.close()
