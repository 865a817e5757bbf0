"""The writer: asynchronous, robust against disk errors and invalid rows, with every loss counted."""

import functools
import resource
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from toold.store import KEY_BYTES, CallRow, Retention, StoreError
from toold.store import store_writer as writing
from toold.store.commit_entries import CommitItem, LocalResults, ResultsAcknowledged, SessionClosed, SessionsSeen
from toold.store.group_committer import Content
from toold.store.sqlite import commit_group
from toold.store.sqlite.commit_group import write
from toold.store.sqlite.committer import SqliteCommitter
from toold.store.store_limits import ROWS_PER_STATEMENT
from toold.store.store_writer import MAX_QUEUED, MAX_QUEUED_BYTES, StoreWriter

Call = Any  # conftest.Journalled
MakeRow = Callable[..., CallRow]
KEY = b"k" * KEY_BYTES


def writer_on(path: Path, content: Content = str) -> StoreWriter:
    return StoreWriter(SqliteCommitter(path, content=content, retention=Retention(), key=KEY))


def rows_in(path: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT id, arguments FROM call ORDER BY seq").fetchall()


class Gate:
    """A content function that blocks the writer's thread until it is opened."""

    def __init__(self) -> None:
        self.reached, self.open = threading.Event(), threading.Event()

    def __call__(self, _: object) -> str:
        self.reached.set()
        assert self.open.wait(30)
        return "{}"


@pytest.mark.parametrize("count", [1, ROWS_PER_STATEMENT, 2 * ROWS_PER_STATEMENT + 1])
def test_all_rows_arrive_in_order(database: Path, row: MakeRow, count: int) -> None:
    """Each row is written once, in order, with the result of the content function."""
    writer = writer_on(database, content=lambda arguments: f"[{arguments}]")
    for number in range(count):
        writer.record(row(id=str(number), arguments=number))
    writer.flush().result(30)
    assert rows_in(database) == [(str(number), f"[{number}]") for number in range(count)]
    assert (writer.rows_written, writer.rows_dropped, writer.queued) == (count, 0, 0)
    writer.close(30)


def test_rows_are_written_without_a_flush(database: Path, row: MakeRow) -> None:
    """The writer's thread writes rows without a flush."""
    seen = threading.Event()
    writer = writer_on(database, content=lambda _: seen.set())
    writer.record(row(arguments={}))
    assert seen.wait(30)
    writer.close(30)
    assert len(rows_in(database)) == 1


def test_record_does_not_block(database: Path, row: MakeRow) -> None:
    """While the writer's thread is blocked, rows queue up to the limit; further rows are dropped and counted."""
    gate = Gate()
    writer = writer_on(database, content=gate)
    writer.record(row(arguments={}))
    assert gate.reached.wait(30)
    for _ in range(MAX_QUEUED + 5):
        writer.record(row())
    assert writer.rows_dropped == 5
    gate.open.set()
    writer.flush().result(30)
    assert writer.rows_written == MAX_QUEUED + 1
    writer.close(30)


def test_queued_arguments_are_limited(database: Path, row: MakeRow) -> None:
    """Beyond the limit on bytes, rows are stored without their arguments."""
    gate = Gate()
    writer = writer_on(database, content=gate)
    writer.record(row(arguments={}))
    assert gate.reached.wait(30)
    for name in ("fits", "does not"):
        writer.record(row(id=name, arguments={"a": 1}, arguments_bytes=MAX_QUEUED_BYTES // 2 + 1))
    gate.open.set()
    writer.flush().result(30)
    assert rows_in(database)[1:] == [("fits", "{}"), ("does not", None)]
    writer.close(30)


def test_failing_content_function_drops_the_arguments(database: Path, row: MakeRow) -> None:
    """If the content function raises, the row is stored without arguments, and the log reports it."""

    def fails(_: object) -> str:
        raise RecursionError

    writer = writer_on(database, content=fails)
    with capture_logs() as lines:
        writer.record(row(id="a", arguments={}))
        writer.flush().result(30)
    assert rows_in(database) == [("a", None)]
    assert len(lines) == 1
    writer.close(30)


@pytest.mark.parametrize("bad", [{"input_tokens": 2**70}, {"message": "\ud800"}, {"tool": None}, {"model": object()}])
def test_unstorable_row_fails_alone(database: Path, row: MakeRow, bad: dict[str, Any]) -> None:
    """The other rows of the group are written; the invalid row is counted and logged."""
    writer = writer_on(database)
    with capture_logs() as lines:
        for fields in ({"id": "a"}, {"id": "bad", **bad}, {"id": "c"}):
            writer.record(row(**fields))
        writer.flush().result(30)
    assert [name for name, _ in rows_in(database)] == ["a", "c"]
    assert (writer.rows_written, writer.rows_dropped, writer.problem) == (2, 1, None)
    assert [line["log_level"] for line in lines] == ["warning"]
    writer.close(30)


def test_locked_database_is_a_temporary_problem(database: Path, row: MakeRow, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the database is locked, rows wait, ``problem`` says why and the log says it once; then all are written."""
    connect = functools.partial(sqlite3.connect, timeout=0, isolation_level=None)
    monkeypatch.setattr(sqlite3, "connect", connect)  # without the default wait of 5 s
    writer = writer_on(database)
    with closing(connect(database)) as other, capture_logs() as lines:
        other.execute("BEGIN EXCLUSIVE")
        for number in range(3):
            writer.record(row(id=str(number)))
            writer.flush().result(30)
        assert writer.problem == "database is locked"  # no path of the server: clients see it
        assert (writer.rows_written, writer.queued) == (0, 3)
        other.execute("ROLLBACK")
        writer.flush().result(30)
        assert (writer.rows_written, writer.queued, str(writer.problem)) == (3, 0, "None")
    assert [line["log_level"] for line in lines] == ["error", "info"]
    writer.close(30)


FULL_DISK = """
import resource, signal, sys, pathlib
from toold.store import KEY_BYTES, CallRow, Retention
from toold.store.sqlite.committer import SqliteCommitter
from toold.store.store_writer import StoreWriter

def row(number):
    return CallRow(id=str(number), started_at=1e10, transport="t", principal="p", session_id="s", session_label="l",
                   client="c", request_id="1", tool="echo", outcome="ok", latency_ms=1.0, message="m" * 500)

path = pathlib.Path(sys.argv[1])
writer = StoreWriter(SqliteCommitter(path, content=str, retention=Retention(), key=b"k" * 32))
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
for number in range(1000):
    writer.record(row(number))
    if number % 50 == 0:
        writer.flush().result(30)
writer.flush().result(30)
print("problem" if writer.problem and writer.queued and writer.rows_written + writer.queued == 1000 else vars(writer))
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
writer.flush().result(30)
print(writer.problem, writer.rows_written, writer.queued, writer.rows_dropped)
writer.close(30)
"""


@pytest.mark.process
def test_full_disk_is_a_temporary_problem(database: Path) -> None:
    """Rows wait while the disk is full; when it has space again, each is written once."""
    # The limit of file sizes applies to a process, so this runs in a separate one.
    command = [sys.executable, "-c", FULL_DISK, str(database)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    reported = [line for line in done.stdout.splitlines() if "database" not in line]
    assert reported == ["problem", "None 1000 0 0"], done.stdout + done.stderr
    assert [name for name, _ in rows_in(database)] == [str(number) for number in range(1000)]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 200_000


def test_close_writes_queued_rows(database: Path, row: MakeRow) -> None:
    """Rows recorded before the close are in the file; later rows count as dropped."""
    writer = writer_on(database)
    for number in range(250):
        writer.record(row(id=str(number)))
    writer.close(30)
    assert len(rows_in(database)) == 250
    writer.record(row())
    assert writer.rows_dropped == 1
    assert writer.flush().done()


def test_close_stops_at_its_timeout(database: Path, row: MakeRow) -> None:
    """If the writer's thread hangs, closing returns at its timeout and logs the number of lost rows."""
    gate = Gate()
    writer = writer_on(database, content=gate)
    writer.record(row(arguments={}))
    assert gate.reached.wait(30)
    writer.record(row())
    with capture_logs() as lines:
        writer.close(0.01)
    assert [line["log_level"] for line in lines] == ["error"]
    gate.open.set()
    writer.close(30)


def test_concurrent_entries_share_a_commit(
    database: Path, row: MakeRow, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls that start while the disk is busy share the next commit."""
    groups: list[int] = []

    def counted(connection: sqlite3.Connection, items: Sequence[CommitItem], *others: Any, **options: Any) -> None:
        groups.append(len(items))
        write(connection, items, *others, **options)

    monkeypatch.setattr(commit_group, "write", counted)
    gate = Gate()
    writer = writer_on(database, content=gate)
    writer.record(row(arguments={}))
    assert gate.reached.wait(30)
    commits = [writer.commit(call.starts(str(number))) for number in range(50)]
    gate.open.set()
    assert all(done.result(30) for done in commits)
    assert groups == [51]
    writer.close(30)


def test_full_queue_refuses_starts_and_accepts_ends(database: Path, row: MakeRow, call: Call) -> None:
    """Beyond the limit a start fails with the reason; ends are always accepted."""
    gate = Gate()
    writer = writer_on(database, content=gate)
    assert writer.commit(call.starts("runs")).result(30)
    writer.record(row(arguments={}))
    assert gate.reached.wait(30)
    for _ in range(MAX_QUEUED):
        writer.record(row())
    with pytest.raises(StoreError, match="too many writes"):
        writer.commit(call.starts("late")).result(0)
    end = writer.commit(call.ends("runs"))
    gate.open.set()
    assert end.result(30)
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT request_key, state FROM journal").fetchall() == [("runs", "done")]
    writer.close(30)


def test_queued_session_changes_are_limited(database: Path, row: MakeRow, call: Call) -> None:
    """Changes of sessions that queue while the disk does not respond stay within the limit."""
    gate = Gate()
    writer = writer_on(database, content=gate)
    writer.record(row(arguments={}))
    assert gate.reached.wait(30)
    for number in range(MAX_QUEUED + 1000):
        writer.enqueue_optional(ResultsAcknowledged("s-1", [str(number)]))
        writer.enqueue_optional(SessionsSeen(["s-1"], 0.0))
        writer.enqueue_optional(call.session)
        writer.enqueue_optional(SessionClosed("s-1"))
    assert writer.queued <= MAX_QUEUED
    gate.open.set()
    writer.close(30)


def test_known_problem_fails_writes_at_once(
    database: Path, row: MakeRow, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Awaited writes fail at once while a problem is known; ends are written when the disk works again."""
    connect = functools.partial(sqlite3.connect, timeout=0, isolation_level=None)
    monkeypatch.setattr(sqlite3, "connect", connect)
    monkeypatch.setattr(writing, "RETRY_S", 0.01)
    writer = writer_on(database)
    writer.enqueue_optional(call.session)
    for key in ("1", "2"):
        assert writer.commit(call.starts(key)).result(30)
    with closing(connect(database)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert isinstance(writer.commit(call.ends("1")).exception(30), StoreError)
        for done in (
            writer.commit(call.starts("3")),
            writer.commit(call.ends("2")),
            writer.commit(LocalResults([call.local()])),
        ):
            error = done.exception(0)
            assert isinstance(error, StoreError)
            assert error.reason == "database is locked"
        other.execute("ROLLBACK")
        while writer.problem:
            threading.Event().wait(0.01)
        assert [name for name, _ in rows_in(database)] == ["call-1", "call-2"]
        assert other.execute("SELECT request_key, state FROM journal").fetchall() == [("1", "done"), ("2", "done")]
    assert writer.commit(call.starts("3")).result(30)
    writer.close(30)


def test_queued_arguments_of_journalled_calls_are_limited(database: Path, row: MakeRow, call: Call) -> None:
    """Beyond the limit on bytes, audit rows of journalled calls lose their arguments until the writer has caught up."""
    gate = Gate()
    writer = writer_on(database, content=gate)
    writer.record(row(arguments={}))
    assert gate.reached.wait(30)
    large = MAX_QUEUED_BYTES // 2 + 1
    first = [writer.commit(call.ends(key, arguments={}, arguments_bytes=large)) for key in "ab"]
    gate.open.set()
    assert all(done.result(30) for done in first)
    assert writer.commit(call.ends("c", arguments={}, arguments_bytes=large)).result(30)
    assert rows_in(database)[1:] == [("call-a", "{}"), ("call-b", None), ("call-c", "{}")]
    writer.close(30)


def test_closed_writer_refuses_writes(database: Path, call: Call) -> None:
    """Writes after the close fail at once instead of waiting for the ended thread."""
    writer = writer_on(database)
    writer.close(30)
    for done in (writer.commit(call.starts()), writer.commit(call.ends()), writer.commit(LocalResults([]))):
        assert isinstance(done.exception(0), StoreError)


def test_unexpected_error_fails_awaited_entries(database: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Awaited entries fail with the type of an unexpected error, without its message."""

    def fails(*_: object) -> None:
        raise LookupError("/a/path/of/the/server")

    writer = writer_on(database)
    with monkeypatch.context() as patched, capture_logs():
        patched.setattr(writer._committer, "_commit", fails)
        with pytest.raises(StoreError, match=r"\(LookupError\)"):
            writer.commit(call.starts()).result(30)
    writer.close(30)


def test_unexpected_error_does_not_end_the_writer(
    database: Path, row: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unexpected error becomes the problem, without its message, and is logged once; then all rows are written."""

    def fails(*_: object) -> None:
        raise LookupError("/a/path/of/the/server")

    writer = writer_on(database)
    with monkeypatch.context() as patched, capture_logs() as lines:
        patched.setattr(writer._committer, "_commit", fails)
        for name in "ab":
            writer.record(row(id=name))
            writer.flush().result(30)
        assert writer.problem == "LookupError"
    assert [(line["log_level"], line["exc_info"]) for line in lines] == [("error", True)]
    writer.flush().result(30)
    assert (str(writer.problem), writer.rows_dropped) == ("None", 0)
    assert [name for name, _ in rows_in(database)] == ["a", "b"]
    writer.close(30)


def test_writer_raises_if_the_file_cannot_be_opened(tmp_path: Path) -> None:
    """No thread is started for a file that cannot be opened."""
    before = threading.active_count()
    with pytest.raises(StoreError):
        writer_on(tmp_path / "missing" / "toold.db")
    assert threading.active_count() == before
