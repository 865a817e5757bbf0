"""The chain across starts, crashes, retention, refused rows and changes by other programs."""

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from toold.store import GENESIS, CallRow, ChainSigner, Checkpoint, SettledCalls, Store, canonical, open_archive
from toold.store.audit_rows import COLUMNS, audit_values
from toold.store.chain_extension import ChainExtension
from toold.store.sqlite import audit_outbox, audit_sql, chain_checkpoints
from toold.store.sqlite.chain_writer import ChainWriter
from toold.store.sqlite.store_schema import STEPS, open_database

MakeRow = Callable[..., CallRow]
OpenStore = Callable[..., Store]


@pytest.fixture
def signer(audit_key: bytes) -> ChainSigner:
    return ChainSigner(audit_key)


def add(connection: sqlite3.Connection, chain_writer: ChainWriter, *rows: CallRow) -> None:
    with chain_writer.extending(connection) as chain:
        audit_sql.add(connection, chain, [audit_values(row, None) for row in rows])


def noted(connection: sqlite3.Connection) -> list[Checkpoint]:
    return list(chain_checkpoints.trail(connection).checkpoints)


def kinds(connection: sqlite3.Connection) -> list[tuple[str, int, int, int | None]]:
    return [(item.kind, item.first_seq, item.last_seq, item.calls) for item in noted(connection)]


def test_each_mac_extends_the_one_before(
    connection: sqlite3.Connection, chain_writer: ChainWriter, row: MakeRow, signer: ChainSigner
) -> None:
    """Each MAC extends the previous one within and across groups; the signed head has the last one."""
    add(connection, chain_writer, row(id="a"), row(id="b"))
    add(connection, chain_writer, row(id="c"))
    before = GENESIS
    for number, item in enumerate(audit_outbox.unsent(connection, 0, 10), 1):
        before = signer.row(before, canonical(audit_values(item.call, None)))
        assert (item.seq, item.mac) == (number, before)
    head = chain_checkpoints.head(connection)
    assert head
    assert (head.last_seq, head.last_mac, head.closed) == (3, before, False)
    assert signer.is_signed(head)


def test_rolled_back_rows_are_not_in_the_chain(
    connection: sqlite3.Connection, chain_writer: ChainWriter, row: MakeRow
) -> None:
    """A rolled-back group uses no number and no MAC."""
    add(connection, chain_writer, row(id="a"))
    with pytest.raises(OverflowError):
        add(connection, chain_writer, row(id="bad", input_tokens=2**70))
    add(connection, chain_writer, row(id="b"))
    assert [item.seq for item in audit_outbox.unsent(connection, 0, 10)] == [1, 2]
    assert chain_writer.last_seq == 2


def test_first_start_begins_the_chain(
    connection: sqlite3.Connection, chain_writer: ChainWriter, signer: ChainSigner
) -> None:
    """An empty database gets a signed beginning before its first row."""
    with chain_writer.extending(connection):
        pass
    assert kinds(connection) == [("began", 1, 0, 0)]
    assert all(signer.is_signed(item) for item in noted(connection))


async def test_chain_begins_after_older_rows(open_store: OpenStore, row: MakeRow, database: Path) -> None:
    """Older rows keep no MAC, the chain begins after them, and the backup has the old schema."""
    with closing(open_database(database, STEPS[:3])) as connection:
        marks = ", ".join("?" * len(COLUMNS))
        connection.executemany(
            f"INSERT INTO call ({', '.join(COLUMNS)}) VALUES ({marks})",  # noqa: S608 - our own names
            [audit_values(row(id=name), None) for name in "ab"],
        )
    store = open_store()
    store.audit.record(row(id="c"))
    await store.close()
    with closing(open_database(database)) as connection:
        result = audit_outbox.unsent(connection, 0, 10)
        assert [(item.seq, item.mac is None) for item in result] == [(1, True), (2, True), (3, False)]
        assert kinds(connection) == [("began", 1, 2, 2)]
    assert database.with_name("toold.db.v3.bak").exists()


async def test_clean_shutdown_leaves_no_gap(open_store: OpenStore, row: MakeRow, database: Path) -> None:
    """After a clean shutdown the next start continues the chain without a log line."""
    for name in "ab":
        store = open_store()
        store.audit.record(row(id=name))
        await store.close()
    with closing(open_database(database)) as connection:
        assert kinds(connection) == [("began", 1, 0, 0)]
        head = chain_checkpoints.head(connection)
        assert head
        assert head.closed


async def test_crash_adds_a_gap_checkpoint(open_store: OpenStore, row: MakeRow, database: Path, tmp_path: Path) -> None:
    """After a crash a gap checkpoint covers the time since the last commit, with an unknown number of rows."""
    store = open_store()
    store.audit.record(row(id="a"))
    await store.flush()
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for path in database.parent.glob("toold.db*"):  # the state that a killed process leaves
        shutil.copy(path, crashed)
    await store.close()
    for path in crashed.iterdir():
        shutil.copy(path, database.parent)
    with capture_logs() as lines:
        reopened = open_store()
    assert [line["log_level"] for line in lines] == ["warning"]
    await reopened.close()
    with closing(open_database(database)) as connection:
        assert kinds(connection) == [("began", 1, 0, 0), ("gap", 2, 1, None)]
        gap = noted(connection)[1]
    assert gap.since < gap.until
    assert gap.before == gap.after != GENESIS


async def test_dropped_rows_have_a_checkpoint(open_store: OpenStore, row: MakeRow, database: Path) -> None:
    """Dropped rows leave a checkpoint with their number at their position."""
    store = open_store()
    store.audit.record(row(id="a"))
    await store.flush()
    with capture_logs():
        store.audit.record(row(id="bad", input_tokens=2**70))
        store.audit.record(row(id="bad", message="\ud800"))
        await store.flush()
    store.audit.record(row(id="b"))
    await store.close()
    with closing(open_database(database)) as connection:
        assert kinds(connection)[1:] == [("dropped", 2, 1, 2)]


def test_retention_extends_its_checkpoint(
    connection: sqlite3.Connection, chain_writer: ChainWriter, row: MakeRow, signer: ChainSigner
) -> None:
    """Repeated retention extends one checkpoint for expired rows and one for unsent rows; the chain continues."""
    add(connection, chain_writer, *(row(id=str(at), started_at=float(at)) for at in range(1, 10)))
    with chain_writer.extending(connection):
        audit_outbox.settle(connection, [SettledCalls(up_to=3, at=1.0, sent=3)])
    macs = {item.seq: item.mac for item in audit_outbox.unsent(connection, 0, 10)}
    for before in (3.0, 6.0, 8.0):
        with chain_writer.extending(connection) as chain:
            audit_sql.delete_expired(connection, chain, before=before, now=1e9, max_bytes=2**40)
    assert kinds(connection)[1:] == [("expired", 1, 7, 7), ("unsent", 4, 7, 4)]
    _, expired, unsent = noted(connection)
    assert (expired.before, expired.after) == (GENESIS, macs[7])
    assert (unsent.before, unsent.after) == (macs[3], macs[7])
    assert all(signer.is_signed(item) for item in noted(connection))


def test_refused_rows_have_a_checkpoint(
    connection: sqlite3.Connection, chain_writer: ChainWriter, row: MakeRow
) -> None:
    """Adjacent refused rows share a checkpoint, even if they are refused one after the other."""
    add(connection, chain_writer, *(row(id=str(number)) for number in range(9)))
    macs = {item.seq: item.mac for item in audit_outbox.unsent(connection, 0, 10)}
    for some in ([2, 3, 5], [6], [8]):
        with chain_writer.extending(connection) as chain:
            chain.add_refused(some)
    assert kinds(connection)[1:] == [("refused", 2, 3, 2), ("refused", 5, 6, 2), ("refused", 8, 8, 1)]
    assert [(item.before, item.after) for item in noted(connection)[1:]] == [
        (macs[1], macs[3]), (macs[4], macs[6]), (macs[7], macs[8]),
    ]  # fmt: skip


def test_extended_checkpoint_is_sent_again(
    connection: sqlite3.Connection, chain_writer: ChainWriter, row: MakeRow
) -> None:
    """A checkpoint that is extended while it is being sent is sent again."""
    add(connection, chain_writer, *(row(id=str(number)) for number in range(3)))
    with chain_writer.extending(connection) as chain:
        chain.add_refused([1])
    on_its_way = chain_checkpoints.unsent(connection, 10)
    with chain_writer.extending(connection) as chain:
        chain.add_refused([2])
        chain_checkpoints.mark_sent(connection, on_its_way)
    assert [(item.kind, item.last_seq) for item in chain_checkpoints.unsent(connection, 10)] == [("refused", 2)]


def test_another_key_begins_a_new_chain(
    connection: sqlite3.Connection, chain_writer: ChainWriter, row: MakeRow
) -> None:
    """A chain with another key begins after the rows of the first key and leaves them unchanged; the log reports it."""
    add(connection, chain_writer, row(id="a"))
    with capture_logs() as lines:
        other = ChainWriter(b"o" * 32)
        add(connection, other, row(id="b"))
    assert [line["log_level"] for line in lines] == ["error"]
    assert kinds(connection) == [("began", 1, 0, 0), ("began", 1, 1, 1)]
    assert [item.seq for item in audit_outbox.unsent(connection, 0, 10)] == [1, 2]


@pytest.mark.parametrize(
    "change", ["UPDATE head SET last_seq = 1", "DELETE FROM head", "UPDATE head SET closed = 1, at = 'x'"]
)
def test_changed_head_is_not_signed_again(
    connection: sqlite3.Connection, chain_writer: ChainWriter, row: MakeRow, audit_key: bytes, change: str
) -> None:
    """A head without a valid signature is not signed at a start: the chain restarts, and no number is used twice."""
    add(connection, chain_writer, row(id="a"), row(id="b"))
    connection.execute(change)
    with capture_logs() as lines:
        add(connection, ChainWriter(audit_key, expects_chain=True), row(id="c"))
    assert [line["log_level"] for line in lines] == ["error"]
    assert kinds(connection)[1:] == [("begun again", 1, 2, 2)]
    assert [item.seq for item in audit_outbox.unsent(connection, 0, 10)] == [1, 2, 3]


def test_continued_chain_logs_nothing(
    connection: sqlite3.Connection, chain_writer: ChainWriter, row: MakeRow, audit_key: bytes
) -> None:
    """A start with an existing key continues the chain that the key signed and logs nothing."""
    add(connection, chain_writer, row(id="a"))
    with chain_writer.extending(connection, closed=True):
        pass
    with capture_logs() as lines:
        add(connection, ChainWriter(audit_key, expects_chain=True), row(id="b"))
    assert lines == []
    assert kinds(connection) == [("began", 1, 0, 0)]


def test_empty_database_with_an_older_key_restarts_the_chain(
    connection: sqlite3.Connection, audit_key: bytes, signer: ChainSigner
) -> None:
    """A removed or emptied database is not mistaken for a first start: a signed checkpoint records the restart."""
    with capture_logs() as lines, ChainWriter(audit_key, expects_chain=True).extending(connection):
        pass
    assert [line["log_level"] for line in lines] == ["error"]
    assert kinds(connection) == [("begun again", 1, 0, 0)]
    assert all(signer.is_signed(item) for item in noted(connection))


def test_checkpoint_from_before_a_restart_is_not_extended(
    connection: sqlite3.Connection, chain_writer: ChainWriter, row: MakeRow, audit_key: bytes
) -> None:
    """Rows that expire after a chain restart get a separate checkpoint."""
    add(connection, chain_writer, *(row(id=str(at), started_at=float(at)) for at in (1, 2)))
    with chain_writer.extending(connection) as chain:
        audit_sql.delete_expired(connection, chain, before=2.0, now=1e9, max_bytes=2**40)
    connection.execute("DELETE FROM head")
    with capture_logs():
        again = ChainWriter(audit_key, expects_chain=True)
        add(connection, again, row(id="3", started_at=3.0))
    with again.extending(connection) as chain:
        audit_sql.delete_expired(connection, chain, before=4.0, now=1e9, max_bytes=2**40)
    assert [kind for kind in kinds(connection) if kind[0] == "expired"] == [("expired", 1, 1, 1), ("expired", 2, 3, 2)]


def test_running_writer_trusts_its_own_head(
    connection: sqlite3.Connection, chain_writer: ChainWriter, row: MakeRow
) -> None:
    """A head and rows that are set back while the writer runs leave a gap in the numbers."""
    add(connection, chain_writer, row(id="a"))
    old = chain_checkpoints.head(connection)
    assert old
    add(connection, chain_writer, row(id="b"))
    connection.execute("DELETE FROM call WHERE id = 'b'")
    chain_checkpoints.write_head(connection, old)
    add(connection, chain_writer, row(id="c"))
    assert [item.seq for item in audit_outbox.unsent(connection, 0, 10)] == [1, 3]


def test_commit_reported_as_failed_may_have_succeeded(
    connection: sqlite3.Connection, chain_writer: ChainWriter, row: MakeRow, audit_key: bytes
) -> None:
    """If a commit succeeded although the disk reported an error, the next row still gets a new number."""
    add(connection, chain_writer, row(id="a"))
    twin = ChainWriter(audit_key)
    twin._head = chain_writer._head
    add(connection, twin, row(id="b"))
    add(connection, chain_writer, row(id="c"))
    assert [item.seq for item in audit_outbox.unsent(connection, 0, 10)] == [1, 2, 3]


def test_unsigned_checkpoint_is_not_extended(
    connection: sqlite3.Connection, chain_writer: ChainWriter, row: MakeRow, signer: ChainSigner
) -> None:
    """A changed checkpoint is not signed again; the writer adds a new one."""
    add(connection, chain_writer, *(row(id=str(number)) for number in range(3)))
    with chain_writer.extending(connection) as chain:
        chain.add_refused([1])
    connection.execute("UPDATE checkpoint SET calls = 9 WHERE kind = 'refused'")
    with chain_writer.extending(connection) as chain:
        chain.add_refused([2])
    assert [signer.is_signed(item) for item in noted(connection)] == [True, False, True]


async def test_unsent_rows_are_synced_before_they_are_returned(
    open_store: OpenStore, row: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are synced once before they are returned for sending."""
    synced: list[int] = []
    extending = ChainExtension.complete

    def watched(self: ChainExtension, at: float, dropped: int) -> None:
        assert isinstance(self.records, chain_checkpoints.SqliteChainRecords)
        (level,) = self.records._connection.execute("PRAGMA synchronous").fetchone()
        synced.append(level)
        extending(self, at, dropped)

    monkeypatch.setattr(ChainExtension, "complete", watched)
    store = open_store()
    store.audit.record(row(id="a"))
    await store.flush()
    assert synced == [1]  # NORMAL, as SQLite numbers it
    for _ in range(3):
        assert [unsent_call.call.id for unsent_call in await store.audit.unsent_calls(0, 10)] == ["a"]
    assert synced == [1, 2]  # FULL
    await store.close()


async def test_archive_reads_one_snapshot(open_store: OpenStore, row: MakeRow, database: Path) -> None:
    """Rows written during a read do not appear in its snapshot of the rows and the head."""
    store = open_store()
    store.audit.record(row(id="a"))
    await store.flush()
    with open_archive(database) as archive:
        head = archive.trail().head
        store.audit.record(row(id="b"))
        await asyncio.wait_for(store.flush(), 30)
        assert len(list(archive.chained_rows())) == 1
        assert archive.trail().head == head
    await store.close()
