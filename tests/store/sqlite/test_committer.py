"""The committer: failed writes are retried, awaited entries fail at once, one invalid entry does not affect others."""

import concurrent.futures
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs
from tests.full_disk import largest_file
from tests.store.sqlite.committer_steps import (
    CALLS,
    JOURNAL,
    Call,
    MakeRow,
    OpenCommitter,
    attempt,
    commit_item,
    crash,
    read,
    result,
)
from toold.store import StoreError
from toold.store.commit_entries import CommitItem, LocalResults, ResultsAcknowledged, SessionClosed
from toold.store.sqlite.committer import SqliteCommitter


@pytest.fixture
def refusing(database: Path, committer: SqliteCommitter) -> Iterator[sqlite3.Connection]:
    """The database is locked until this is rolled back."""
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


def test_futures_resolve_after_the_commit(committer: SqliteCommitter, call: Call, database: Path) -> None:
    """The result is set when the entry is in the file; a second start of the id is refused."""
    first, second, end = (
        commit_item(call.starts()),
        commit_item(call.starts()),
        commit_item(call.ends(arguments={"a": 1})),
    )
    attempt(committer, CommitItem(call.session), first, second)
    assert (result(first), result(second)) == (True, False)
    assert read(database, JOURNAL) == [("1", "started")]
    attempt(committer, end)
    assert result(end)
    assert read(database, JOURNAL) == [("1", "done")]
    assert read(database, CALLS) == [("call-1", "ok", '{"a": 1}')]
    assert committer.rows_written == 1


def test_failed_start_is_not_written_later(
    committer: SqliteCommitter, refusing: sqlite3.Connection, call: Call, database: Path
) -> None:
    """Starts and local results fail with the reason and are dropped; a later attempt may succeed."""
    start, keep = commit_item(call.starts()), commit_item(LocalResults([call.local("2")]))
    waiting = [item.done for item in (start, keep) if item.done]
    attempt(committer, CommitItem(call.session), start, keep)
    assert [str(done.exception(0)) for done in waiting] == ["the database cannot be written (database is locked)"] * 2
    refusing.execute("ROLLBACK")
    committer.attempt()
    assert committer.problem is None
    assert read(database, JOURNAL) == []
    repeat = commit_item(call.starts())
    attempt(committer, repeat)
    assert result(repeat)


def test_removed_database_fails_writes(committer: SqliteCommitter, call: Call, database: Path) -> None:
    """Writes to removed files do not count as written; no new file is created."""
    attempt(committer, CommitItem(call.session), commit_item(call.starts()))
    paths = list(database.parent.glob("toold.db*"))
    renames = [path.rename(path.with_name(f"kept-{path.name}")) for path in paths]
    start = commit_item(call.starts("2"))
    done = start.done
    with capture_logs() as lines:
        attempt(committer, start)
        committer.attempt()
    assert done
    assert "restart the daemon" in str(done.exception(0))
    assert str(database.parent) not in str(done.exception(0))
    assert committer.problem
    assert [line["log_level"] for line in lines] == ["error"]
    assert not database.exists()
    for path, old in zip(paths, renames, strict=True):
        old.rename(path)
    repeat = commit_item(call.starts("2"))
    attempt(committer, repeat)
    assert result(repeat)


def test_failed_end_is_written_later(
    committer: SqliteCommitter, refusing: sqlite3.Connection, call: Call, database: Path
) -> None:
    """The future fails without a path; result and row are written once when the disk works again."""
    refusing.execute("ROLLBACK")
    attempt(committer, CommitItem(call.session), CommitItem(call.starts()))
    refusing.execute("BEGIN IMMEDIATE")
    end = commit_item(call.ends(result=b"[1]"))
    done = end.done
    assert done
    attempt(committer, end)
    with pytest.raises(StoreError) as reported:
        done.result(0)
    assert reported.value.reason == committer.problem == "database is locked"
    assert str(database) not in str(reported.value)
    committer.attempt()
    assert len(committer.group) == 1
    refusing.execute("ROLLBACK")
    committer.attempt()
    committer.attempt()
    assert read(database, "SELECT state, result FROM journal JOIN result USING (number)") == [("done", b"[1]")]
    assert len(read(database, CALLS)) == 1


def test_problem_clears_without_new_entries(
    committer: SqliteCommitter, refusing: sqlite3.Connection, call: Call
) -> None:
    """An attempt without entries clears the problem when the disk works again; the log records each change once."""
    start = commit_item(call.starts())
    done = start.done
    assert done
    with capture_logs() as lines:
        attempt(committer, start)
        assert isinstance(done.exception(0), StoreError)
        assert committer.group == []
        committer.attempt()
        assert committer.problem
        refusing.execute("ROLLBACK")
        committer.attempt()
    assert str(committer.problem) == "None"
    assert [line["log_level"] for line in lines] == ["error", "info"]


def test_recovery_check_writes_to_the_disk(
    committer: SqliteCommitter, refusing: sqlite3.Connection, database: Path
) -> None:
    """A disk that can only be read does not count as recovered."""
    attempt(committer, CommitItem(SessionClosed("s")))
    refusing.execute("ROLLBACK")
    log = database.with_name("toold.db-wal")
    before = log.stat().st_size
    committer.attempt()
    assert committer.problem is None
    assert log.stat().st_size > before


def test_wal_is_not_recovered_after_an_error(
    committer: SqliteCommitter, open_committer: OpenCommitter, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an error the new connection opens before the old one closes, so that SQLite does not recover failed
    writes."""
    events: list[str] = []
    connection = committer._connection
    assert connection
    close_old = connection.close

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(connection, name)

        def close(self) -> None:
            events.append("closed")
            close_old()

    opened = sqlite3.connect

    def connect(*args: Any, **options: Any) -> Any:
        events.append("opened")
        return opened(*args, **options)

    monkeypatch.setattr(sqlite3, "connect", connect)
    committer._connection = Watched()  # type: ignore[assignment] # as far as it is used
    committer.fail(OSError())
    committer.attempt()
    assert events == ["opened", "closed"]


@pytest.mark.parametrize("bad", [{"tool": None}, {"principal": "\ud800"}])
def test_unstorable_start_fails_alone(
    committer: SqliteCommitter, call: Call, database: Path, bad: dict[str, Any]
) -> None:
    """A start that cannot be stored fails with the reason and does not affect others."""
    good, odd = commit_item(call.starts("1")), call.starts("2")
    spoilt = commit_item(msgspec.structs.replace(odd, row=msgspec.structs.replace(odd.row, **bad)))
    done = spoilt.done
    assert done
    with capture_logs() as lines:
        attempt(committer, spoilt, good)
    assert result(good)
    with pytest.raises(StoreError, match="cannot be stored"):
        done.result(0)
    assert read(database, JOURNAL) == [("1", "started")]
    assert (committer.problem, [line["log_level"] for line in lines]) == (None, ["warning"])


def test_unstorable_audit_row_does_not_block_the_end(committer: SqliteCommitter, call: Call, database: Path) -> None:
    """The result is stored although its audit row cannot be; the row counts as lost."""
    end = commit_item(call.ends(input_tokens=2**70))
    with capture_logs():
        attempt(committer, CommitItem(call.session), CommitItem(call.starts()), end)
    assert result(end)
    assert read(database, JOURNAL) == [("1", "done")]
    assert (committer.unwritable_rows, committer.rows_written) == (1, 0)


def test_end_without_a_start_writes_its_row(committer: SqliteCommitter, call: Call, database: Path) -> None:
    """An end without a start in the journal writes only its audit row."""
    attempt(committer, CommitItem(call.session), CommitItem(call.ends()))
    assert read(database, JOURNAL) == []
    assert len(read(database, CALLS)) == 1


def test_interrupted_calls_are_found_at_the_next_start(
    committer: SqliteCommitter, open_committer: OpenCommitter, call: Call, database: Path
) -> None:
    """At the next start, started calls become interrupted, each with one row; one log line reports their number."""
    plain = msgspec.structs.replace(call.starts("3"), session_id="plain")
    attempt(
        committer,
        CommitItem(call.session),
        *map(CommitItem, [call.starts("1"), call.starts("2"), call.ends("1"), plain]),
    )
    for start in range(2):
        with capture_logs() as lines:
            reopened = open_committer()
            attempt(reopened)
        reopened.close()
        assert [line["calls"] for line in lines if "calls" in line] == ([2] if start == 0 else [])
        assert read(database, JOURNAL) == [("1", "done"), ("2", "interrupted")]
        assert [row[:2] for row in read(database, CALLS)] == [
            ("call-1", "ok"),
            ("call-2", "OUTCOME_UNKNOWN"),
            ("call-3", "OUTCOME_UNKNOWN"),
        ]


def test_interrupted_calls_are_written_once_the_disk_works(
    committer: SqliteCommitter, open_committer: OpenCommitter, refusing: sqlite3.Connection, call: Call, database: Path
) -> None:
    """If the disk fails at the start, interrupted calls are written when it works again."""
    refusing.execute("ROLLBACK")
    attempt(committer, CommitItem(call.session), CommitItem(call.starts("1")))
    reopened = open_committer()
    refusing.execute("BEGIN IMMEDIATE")
    attempt(reopened)
    assert read(database, JOURNAL) == [("1", "started")]
    refusing.execute("ROLLBACK")
    attempt(reopened, CommitItem(ResultsAcknowledged("s-1", [])))
    assert read(database, JOURNAL) == [("1", "interrupted")]
    assert len(read(database, CALLS)) == 1
    reopened.close()


def test_full_disk_at_the_start(
    committer: SqliteCommitter, open_committer: OpenCommitter, call: Call, row: MakeRow, database: Path
) -> None:
    """A database that a full disk keeps closed is opened once there is space; interrupted calls are written first."""
    attempt(committer, CommitItem(call.session), CommitItem(call.starts("1")))
    crash(committer)
    with largest_file(16 * 1024):
        reopened = open_committer()
        awaited: concurrent.futures.Future[bool] = concurrent.futures.Future()
        attempt(reopened, CommitItem(call.starts("2"), done=awaited), CommitItem(row(id="late")))
        assert reopened.problem
        assert not reopened.opened.done()
        with pytest.raises(StoreError):
            awaited.result(0)
    attempt(reopened)
    assert reopened.opened.done()
    assert str(reopened.problem) == "None"  # mypy considers it set
    assert read(database, JOURNAL) == [("1", "interrupted")]
    assert [call_id for call_id, *_ in read(database, CALLS)] == ["call-1", "late"]
    reopened.close()
    assert read(database, "SELECT count(*) FROM checkpoint WHERE kind = 'gap'") == [(1,)]


def test_unclean_shutdown_is_logged_once(committer: SqliteCommitter, open_committer: OpenCommitter, call: Call) -> None:
    """The log does not repeat with each attempt of a full disk what the previous process left."""
    attempt(committer, CommitItem(call.session))
    crash(committer)
    with capture_logs() as lines:
        reopened = open_committer()
        with largest_file(16 * 1024):
            for _ in range(3):
                attempt(reopened, CommitItem(ResultsAcknowledged("s-1", [])))
        reopened.close()
    assert sum("did not shut down cleanly" in line["event"] for line in lines) == 1


def test_undecodable_template_does_not_block_a_start(
    committer: SqliteCommitter, open_committer: OpenCommitter, call: Call, database: Path
) -> None:
    """A call with an undecodable template is interrupted; its lost row is logged, counted and noted in the chain."""
    attempt(committer, CommitItem(call.session), CommitItem(call.starts("1")), CommitItem(call.starts("2")))
    with closing(sqlite3.connect(database)) as other, other:
        other.execute("UPDATE template SET audit_row = '{}' WHERE number = 1")
    with capture_logs() as lines:
        reopened = open_committer()
        attempt(reopened)
    assert [line.get("rows") for line in lines if line["log_level"] == "error"] == [1]
    assert read(database, JOURNAL) == [("1", "interrupted"), ("2", "interrupted")]
    assert [row[:2] for row in read(database, CALLS)] == [("call-2", "OUTCOME_UNKNOWN")]
    assert read(database, "SELECT calls FROM checkpoint WHERE kind = 'dropped'") == [(1,)]
    assert (reopened.rows_written, reopened.rows_dropped) == (1, 1)
    reopened.close()


def test_journal_is_synced_and_audit_rows_are_not(committer: SqliteCommitter, row: MakeRow, call: Call) -> None:
    """Awaited entries are synced against a power failure; audit rows alone are not."""
    levels = []
    for item in (CommitItem(row()), CommitItem(call.starts()), CommitItem(call.ends()), CommitItem(row())):
        attempt(committer, item)
        assert committer._connection
        (level,) = committer._connection.execute("PRAGMA synchronous").fetchone()
        levels.append(level)
    assert levels == [1, 2, 2, 1]  # NORMAL and FULL, as SQLite numbers them
