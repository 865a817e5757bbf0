"""Opening a database that is new, older, newer or damaged."""

import functools
import json
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from toold.store import SCHEMA, CallRow, Store, StoreError, find_damage, schema_version
from toold.store.sqlite import audit_sql
from toold.store.sqlite.store_schema import STEPS, NewerSchemaError, open_database

SECOND = "ALTER TABLE call ADD COLUMN mood TEXT; UPDATE call SET mood = 'good'"


def columns(path: Path, table: str = "call") -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]


def add_a_call(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        names = columns(path)[1:]
        values = ", ".join("0" for _ in names)
        connection.execute(f"INSERT INTO call ({', '.join(names)}) VALUES ({values})")  # noqa: S608 - our own names


def test_new_file_gets_the_newest_schema(database: Path) -> None:
    """The first start creates the file with the newest schema, readable by its owner only and without a backup."""
    open_database(database).close()
    assert schema_version(database) == SCHEMA == len(STEPS)
    assert stat.S_IMODE(database.stat().st_mode) == 0o600
    assert not list(database.parent.glob("*.bak"))


def test_a_new_database_equals_a_migrated_one(tmp_path: Path) -> None:
    """It has the same tables, indexes, triggers and rows as one that every step has migrated."""
    contents = []
    for name, first in (("migrated.db", STEPS[:1]), ("new.db", STEPS)):
        open_database(tmp_path / name, first).close()
        with closing(open_database(tmp_path / name)) as connection:
            schema = set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema"))
            contents.append((schema, sorted(connection.iterdump())))
    assert contents[0] == contents[1]


def test_table_has_a_column_per_row_field(database: Path) -> None:
    """Each field of CallRow is a column; the others are only ``seq`` and ``mac``."""
    open_database(database).close()
    assert columns(database) == ["seq", *CallRow.__struct_fields__, "mac"]


def test_opening_again_changes_nothing(database: Path) -> None:
    """Opening a file with the current schema does not change it."""
    open_database(database).close()
    add_a_call(database)
    open_database(database).close()
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT count(*) FROM call").fetchone() == (1,)
    assert not list(database.parent.glob("*.bak"))


def test_older_schema_is_migrated_after_a_backup(database: Path) -> None:
    """Each migration step runs once, in order; the backup has the old rows and schema."""
    open_database(database, STEPS[:1]).close()
    add_a_call(database)
    third = "CREATE TABLE extra (x); INSERT INTO extra SELECT mood FROM call"
    open_database(database, (STEPS[0], SECOND, third)).close()
    assert schema_version(database) == 3
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT x FROM extra").fetchall() == [("good",)]
    backup = database.with_name("toold.db.v1.bak")
    assert schema_version(backup) == 1
    assert "mood" not in columns(backup)
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    with closing(sqlite3.connect(backup)) as connection:
        assert connection.execute("SELECT count(*) FROM call").fetchone() == (1,)


def test_database_without_a_journal_is_migrated(database: Path) -> None:
    """Schema 2 keeps its calls and its outbox and gets a journal; its backup is unchanged."""
    with closing(open_database(database, STEPS[:2])) as connection:
        connection.execute("INSERT INTO outbox VALUES (1, 0, 7, 0, 0, NULL)")
    add_a_call(database)
    with closing(open_database(database)) as connection:
        assert connection.execute("SELECT sent FROM outbox").fetchall() == [(7,)]
        assert connection.execute("SELECT count(*) FROM call").fetchall() == [(1,)]
        assert connection.execute("SELECT count(*) FROM journal").fetchall() == [(0,)]
    backup = database.with_name("toold.db.v2.bak")
    assert schema_version(backup) == 2
    assert columns(backup, "journal") == []


def test_journal_of_schema_5_is_migrated(database: Path) -> None:
    """Ids, results, running calls and sums survive the migration; later ends and deletions update the sums."""
    add = (
        "INSERT INTO journal (session_id, request_key, principal, tool, echo_id, arguments_hash, local, state, "
        "started_at, ended_at, audit_row, result_bytes, result) VALUES ('s', ?, 'p', 't', 0, x'', 0, ?, 1, ?, ?, ?, ?)"
    )
    with closing(open_database(database, STEPS[:5])) as connection:
        for call in [
            ("done", "done", 2, None, 3, b"123"),
            ("runs", "started", None, "{}", 0, None),
            ("expired", "expired", 2, None, 0, None),
        ]:
            connection.execute(add, call)
    add_a_call(database)
    calls = (
        "SELECT request_key, state, result_bytes, result, audit_row FROM journal "
        "LEFT JOIN result USING (number) LEFT JOIN template USING (number) ORDER BY number"
    )
    with closing(open_database(database)) as connection:
        assert connection.execute(calls).fetchall() == [
            ("done", "done", 3, b"123", None),
            ("runs", "started", 0, None, "{}"),
            ("expired", "expired", 0, None, None),
        ]
        assert connection.execute("SELECT * FROM kept").fetchall() == [("p", 3, 0)]
        ((size,),) = connection.execute("SELECT bytes FROM calls_size").fetchall()
        assert size > 100
        connection.execute("DELETE FROM call")
        connection.execute("DELETE FROM journal")
        for table in ("kept", "calls_size"):
            assert connection.execute(f"SELECT bytes FROM {table}").fetchall() == [(0,)]  # noqa: S608 - our own names
        for table in ("result", "template"):
            assert connection.execute(f"SELECT * FROM {table}").fetchall() == []  # noqa: S608 - our own names
    assert schema_version(database.with_name("toold.db.v5.bak")) == 5


def test_what_was_spent_before_schema_29_has_no_agent(database: Path) -> None:
    """The sums of schema 28 keep their values."""
    with closing(open_database(database, STEPS[:28])) as connection:
        spent = ("2026-03-01", "ann", "chat", "kimi", "k", 0, "USD", 2, 10, 5, 1, 0.5, 0)
        connection.execute("INSERT INTO day_spent VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", spent)
    with closing(open_database(database)) as connection:
        assert connection.execute("SELECT * FROM day_spent").fetchall() == [(*spent[:3], "", *spent[3:])]


def test_renamed_fields_of_stored_results_are_migrated(database: Path) -> None:
    """A result stored before the fields were renamed has the new names, and no other result changes."""
    old = {
        "outputs": [{"type": "text", "text": "Gr\u00fcezi"}],
        "metadata": {"latency_ms": 1.5, "spent": [{"model": "m", "cost": 0.1}], "chosen_because": "the default"},
        "structured": {"chosen_because": "the default", "answer": None},
    }
    new = {
        "outputs": old["outputs"],
        "metadata": {
            "latency_ms": 1.5,
            "usage_by_model": [{"model": "m", "cost": 0.1}],
            "model_choice_reason": "the default",
        },
        "structured": {"answer": None, "model_choice_reason": "the default"},
    }
    unchanged = [b'{"metadata": {"latency_ms": 2.50}}', b"not JSON"]
    with closing(open_database(database, STEPS[:11])) as connection:
        for result in [json.dumps(old, ensure_ascii=False).encode(), *unchanged]:
            connection.execute("INSERT INTO result (result) VALUES (?)", (result,))
    with closing(open_database(database)) as connection:
        migrated, *others = (result for (result,) in connection.execute("SELECT result FROM result ORDER BY number"))
    assert json.loads(migrated) == new
    assert others == unchanged


def test_sums_from_before_principals_are_migrated(database: Path) -> None:
    """Sums of schema 12 stay in the total, without a principal."""
    with closing(open_database(database, STEPS[:12])) as connection:
        connection.execute("INSERT INTO call_total VALUES ('echo', 'ok', '', '', 0, '', 5, 1, 2, 0.5, 7.0)")
    with closing(open_database(database)) as connection:
        everything = audit_sql.totals(connection)
        assert (everything.all.calls, everything.since) == (5, 7.0)
        assert audit_sql.totals(connection, "local").all.calls == 0


def test_failed_migration_leaves_the_earlier_schema(database: Path) -> None:
    """A failed step is rolled back, so that the older toold still runs, and raises ``StoreError``."""
    open_database(database, STEPS[:1]).close()
    add_a_call(database)
    with pytest.raises(StoreError):
        open_database(database, (STEPS[0], f"{SECOND}; CREATE TABLE call (x)"))
    assert schema_version(database) == 1
    assert "mood" not in columns(database)


def test_newer_schema_is_refused(open_store: Callable[..., Store], database: Path) -> None:
    """A database with a newer schema is left unchanged; the error has both numbers and a remedy."""
    open_database(database, (*STEPS, SECOND)).close()
    content = database.read_bytes()
    with pytest.raises(
        NewerSchemaError, match=f"has schema {SCHEMA + 1}, but this toold supports up to schema {SCHEMA}: install"
    ):
        open_store()
    assert database.read_bytes() == content


def test_invalid_file_is_refused(open_store: Callable[..., Store], database: Path) -> None:
    """A file that is not a database is refused and left unchanged."""
    database.write_text("not a database, " * 100)
    with pytest.raises(StoreError, match=r"move the file and audit\.key away"):
        open_store()
    with pytest.raises(StoreError, match="not a database"):
        schema_version(database)
    assert database.read_text().startswith("not a database")


def test_missing_directory_raises(open_store: Callable[..., Store], database: Path) -> None:
    """If the file cannot be created, the error names it."""
    database.mkdir()
    with pytest.raises(StoreError, match=r"toold\.db cannot be used"):
        open_store()


def test_locked_database_raises(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error for a locked database does not advise to move the file away."""
    open_database(database, STEPS[:1]).close()
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr(sqlite3, "connect", functools.partial(sqlite3.connect, timeout=0))
        with pytest.raises(StoreError, match="end that program, or try again") as raised:
            open_database(database)
    assert "move" not in str(raised.value)
    assert raised.value.reason == "database is locked"


def test_accessible_files_are_restricted_when_opened(database: Path) -> None:
    """The permissions of the database and SQLite's additional files are restricted when they are opened."""
    open_database(database).close()
    database.chmod(0o644)
    with capture_logs() as lines, closing(open_database(database)):
        modes = {stat.S_IMODE(path.stat().st_mode) for path in database.parent.glob("toold.db*")}
    assert modes == {0o600}
    assert {line["log_level"] for line in lines} == {"warning"}


def test_schema_version_creates_no_file(database: Path) -> None:
    """Reading the schema version of a missing database creates no file."""
    with pytest.raises(StoreError):
        schema_version(database)
    assert not database.exists()


COUNT_REFUSED = """
import contextlib, sqlite3, sys
with contextlib.closing(sqlite3.connect(sys.argv[1])) as connection:
    print(connection.execute("SELECT count(*) FROM refused").fetchone()[0])
"""


@pytest.mark.process
def test_reopening_keeps_the_locks_of_the_process(database: Path) -> None:
    """After a reopening, another program that opens and closes the database does not remove the write-ahead log."""

    def count() -> int:
        command = [sys.executable, "-c", COUNT_REFUSED, str(database)]
        return int(subprocess.run(command, check=True, capture_output=True).stdout)

    with closing(open_database(database)), closing(open_database(database)) as repeat:
        repeat.execute("INSERT INTO refused VALUES (1, 'a reason', 0)")
        assert count() == 1
        repeat.execute("INSERT INTO refused VALUES (2, 'a reason', 0)")
        assert count() == 2


def test_damage_is_found(database: Path, damage: Callable[[Path, str], None]) -> None:
    """A damaged page is reported; an intact database has no damage."""
    open_database(database).close()
    assert find_damage(database, within_s=60) is None
    damage(database, "session")
    assert "error code 11" in str(find_damage(database, within_s=60))


def test_damage_check_stops_at_its_deadline(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that exceeds its deadline reports no damage."""
    monkeypatch.setattr("toold.store.sqlite.store_schema._STEPS_PER_CLOCK_CHECK", 1)
    open_database(database).close()
    assert find_damage(database, within_s=-1) is None


def test_invalid_file_counts_as_damaged(database: Path) -> None:
    """A file that is not a database and a missing file have different errors."""
    with pytest.raises(StoreError, match="unable to open"):
        find_damage(database, within_s=60)
    database.write_bytes(b"This is no database at all. " * 1000)
    assert find_damage(database, within_s=60) == "file is not a database"
    with pytest.raises(StoreError, match=r"is damaged .*restore an intact backup"):
        open_database(database)
