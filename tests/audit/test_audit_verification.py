"""Verification of a real database: an unchanged one is intact, and every change is reported with its position."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from toold.audit import ChainFindings, ChainKeyError, verify_local
from toold.store import CallRow, ChainSigner, Retention, SettledCalls, open_archive, open_sqlite_store

Told = list[tuple[str, int, int]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "toold.db"


@pytest.fixture
async def written(path: Path, row: Callable[..., CallRow], audit_key: bytes) -> Path:
    """A database of nine calls that ended in order, after two expired calls, with two refused ones."""
    for retention, ids in ((Retention(days=100_000), ("old-1", "old-2")), (Retention(), "abcdefghi")):
        store = open_sqlite_store(path, content=json.dumps, retention=retention, key=audit_key)
        for name in ids:
            at = {"started_at": 1e9} if len(name) > 1 else {}
            store.audit.record(row(id=name, arguments={"n": 1.0, "text": "\0"}, **at))
        await store.flush()
        for _ in range(2):  # a repeated refusal is recorded once
            store.audit.settle(SettledCalls(up_to=2, at=1.0, refused={1: "no", 2: "no"}))
        await store.close()
    return path


def verified(path: Path, key: bytes) -> ChainFindings:
    with open_archive(path) as archive:
        return verify_local(ChainSigner(key), archive.trail(), archive.chained_rows())


def tamper(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def reported(findings: ChainFindings) -> Told:
    return [(problem.fault, problem.first_seq, problem.last_seq) for problem in findings.problems]


def test_unchanged_database_is_intact(written: Path, audit_key: bytes) -> None:
    """All stored calls are checked, and checkpoints are counted by kind."""
    findings = verified(written, audit_key)
    assert findings.problems == []
    assert (findings.checked, findings.first_seq, findings.last_seq, findings.older) == (9, 3, 11, 0)
    counts = {kind: (count.checkpoints, count.calls) for kind, count in findings.checkpoints.items()}
    assert counts == {"began": (1, 0), "refused": (1, 2), "expired": (1, 2)}


@pytest.mark.parametrize("column", [*CallRow.__struct_fields__])
def test_change_of_any_column_is_detected(written: Path, audit_key: bytes, column: str) -> None:
    """A changed column is reported with the number of its row."""
    tamper(written, f"UPDATE call SET {column} = '7' WHERE seq = 5")  # noqa: S608 - our own names
    assert reported(verified(written, audit_key)) == [("changed", 5, 5)]


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (["DELETE FROM call WHERE seq = 5"], [("missing", 5, 5)]),
        (["DELETE FROM call WHERE seq BETWEEN 5 AND 7"], [("missing", 5, 7)]),
        (["DELETE FROM call WHERE seq = 3"], [("missing", 3, 3)]),
        (["DELETE FROM call WHERE seq > 9"], [("missing", 10, 11)]),
        (["DELETE FROM call"], [("missing", 3, 11)]),
        (["UPDATE call SET mac = NULL WHERE seq = 5"], [("changed", 5, 5)]),
        (["UPDATE call SET mac = 'text' WHERE seq = 5"], [("changed", 5, 5)]),
        (["UPDATE call SET started_at = 'never' WHERE seq = 5"], [("changed", 5, 5)]),
        (["UPDATE call SET arguments = '{' WHERE seq = 5"], [("changed", 5, 5)]),
        (["UPDATE call SET seq = 99 WHERE seq = 11"], [("added", 99, 99), ("missing", 11, 11)]),
        (
            ["UPDATE call SET seq = 0 WHERE seq = 5", "UPDATE call SET seq = 5 WHERE seq = 6",
             "UPDATE call SET seq = 6 WHERE seq = 0"],
            [("out of place", 6, 6), ("out of place", 5, 5)],
        ),
        # The checkpoints and the head.
        (["DELETE FROM checkpoint WHERE kind = 'expired'"], [("missing", 0, 0), ("missing", 1, 2)]),
        (["UPDATE checkpoint SET last_seq = 4 WHERE kind = 'expired'", "DELETE FROM call WHERE seq < 5"],
         [("changed", 1, 4), ("missing", 1, 4)]),
        (["UPDATE checkpoint SET calls = 0 WHERE kind = 'refused'"], [("changed", 1, 2)]),
        (["UPDATE checkpoint SET since = 'x' WHERE kind = 'refused'"], [("changed", 1, 2)]),
        (["DELETE FROM checkpoint WHERE kind = 'began'"], [("missing", 1, 1), ("missing", 0, 0)]),
        (["DELETE FROM head"], [("missing", 0, 0)]),
        (["DELETE FROM head", "UPDATE call SET tool = 'x' WHERE seq = 11"], [("missing", 0, 0), ("changed", 11, 11)]),
        (["UPDATE head SET last_seq = 9", "DELETE FROM call WHERE seq > 9"], [("changed", 9, 9)]),
    ],
)  # fmt: skip
def test_tampering_is_located(written: Path, audit_key: bytes, statements: list[str], expected: Told) -> None:
    """Changed, missing, moved and added rows, checkpoints and heads are reported with their position."""
    tamper(written, *statements)
    assert reported(verified(written, audit_key)) == expected


async def test_older_head_does_not_hide_newer_rows(
    written: Path, row: Callable[..., CallRow], audit_key: bytes
) -> None:
    """If an older valid head is restored, the rows after it are reported as added."""
    with closing(sqlite3.connect(written)) as connection:
        (old,) = connection.execute("SELECT * FROM head").fetchall()
    store = open_sqlite_store(written, content=json.dumps, retention=Retention(), key=audit_key)
    store.audit.record(row(id="new"))
    await store.close()
    with closing(sqlite3.connect(written)) as connection, connection:
        connection.execute("REPLACE INTO head VALUES (?, ?, ?, ?, ?, ?, ?, ?)", old)
    assert reported(verified(written, audit_key)) == [("added", 12, 12)]


async def test_rows_of_another_key_are_not_verified(
    written: Path, row: Callable[..., CallRow], audit_key: bytes
) -> None:
    """The old key cannot verify a new chain; the new key verifies only its own rows."""
    other = b"o" * 32
    with pytest.raises(ChainKeyError, match="restore its key"):
        verified(written, other)
    store = open_sqlite_store(written, content=json.dumps, retention=Retention(), key=other)
    store.audit.record(row(id="new"))
    await store.close()
    with pytest.raises(ChainKeyError):
        verified(written, audit_key)
    findings = verified(written, other)
    assert reported(findings) == [("changed", 3, 11)]
    assert (findings.checked, findings.older) == (1, 9)


async def test_rows_from_before_the_chain_count_as_older(
    path: Path, row: Callable[..., CallRow], audit_key: bytes
) -> None:
    """Rows from before the chain are counted and not reported as problems."""
    await open_sqlite_store(path, content=json.dumps, retention=Retention(), key=b"o" * 32).close()
    store = open_sqlite_store(path, content=json.dumps, retention=Retention(), key=audit_key)
    store.audit.record(row())
    await store.close()
    tamper(path, "UPDATE call SET mac = NULL", "DELETE FROM head", "DELETE FROM checkpoint")
    store = open_sqlite_store(path, content=json.dumps, retention=Retention(), key=audit_key)
    store.audit.record(row())
    await store.close()
    findings = verified(path, audit_key)
    assert (findings.intact, findings.checked, findings.older) == (True, 1, 1)


FORGERIES = {
    "rows without macs, no head, no checkpoints": [
        "UPDATE call SET tool = 'x', mac = NULL",
        "DELETE FROM call WHERE seq > 7",
        "DELETE FROM head",
        "DELETE FROM checkpoint",
    ],
    "the end is changed": ["UPDATE call SET mac = NULL", "UPDATE head SET last_seq = 9", "DELETE FROM checkpoint"],
    "another key's end": ["UPDATE call SET mac = NULL", "UPDATE head SET chain = 'x'", "DELETE FROM checkpoint"],
    "everything is removed": [
        f"DELETE FROM {table}"  # noqa: S608 - our own names
        for table in ("call", "head", "checkpoint", "outbox")
    ],
    "the end alone is removed": ["DELETE FROM head"],
    "the checkpoints stay": ["DELETE FROM head", "DELETE FROM call"],
}


@pytest.mark.parametrize("statements", FORGERIES.values(), ids=FORGERIES.keys())
async def test_start_does_not_sign_forged_rows(
    written: Path, row: Callable[..., CallRow], audit_key: bytes, statements: list[str]
) -> None:
    """After the end of the chain was removed, a start does not accept the remaining rows as old: it logs the
    restart, and verification reports missing rows with a remedy."""
    tamper(written, *statements)
    with capture_logs() as lines:
        store = open_sqlite_store(written, content=json.dumps, retention=Retention(), key=audit_key, expects_chain=True)
    assert "`toold audit verify` reports it" in lines[0]["event"]
    store.audit.record(row(id="new"))
    await store.close()
    findings = verified(written, audit_key)
    assert [problem.fault for problem in findings.problems] == ["missing"]
    assert "move audit.key away too" in findings.problems[0].message
    assert findings.checked == 1
    assert findings.checkpoints["begun again"].checkpoints == 1


@pytest.mark.parametrize("empty", [True, False])
async def test_missing_database_is_reported(written: Path, audit_key: bytes, empty: bool) -> None:
    """After the database was removed or emptied, verification after the next start reports missing rows."""
    for file in written.parent.iterdir():
        file.unlink()
    if empty:
        written.touch()
    with capture_logs():
        await open_sqlite_store(
            written, content=json.dumps, retention=Retention(), key=audit_key, expects_chain=True
        ).close()
    findings = verified(written, audit_key)
    assert reported(findings) == [("missing", 0, 0)]


async def test_rows_without_a_mac_after_the_beginning_count_as_changed(written: Path, audit_key: bytes) -> None:
    """Rows without a MAC that follow the beginning of the chain are changed, not older."""
    tamper(written, "UPDATE call SET mac = NULL WHERE seq > 8")
    findings = verified(written, audit_key)
    assert reported(findings) == [("changed", 9, 9), ("changed", 10, 10), ("changed", 11, 11)]
    assert findings.older == 0


def test_json_has_the_printed_fields(written: Path, audit_key: bytes) -> None:
    """A problem in JSON has the id of its call and a message."""
    tamper(written, "UPDATE call SET tool = 'x' WHERE seq = 5")
    (problem,) = verified(written, audit_key).problems
    shown: dict[str, Any] = {name: getattr(problem, name) for name in problem.__struct_fields__}
    assert shown["call"] == "c"
    assert shown["message"]
