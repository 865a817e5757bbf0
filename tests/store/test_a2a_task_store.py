"""Stored tasks of A2A."""

import sqlite3
from pathlib import Path

import pytest
from toold.store import a2a_task_sql
from toold.store.a2a_task_sql import A2ATaskRow
from toold.store.store_schema import open_database


def task(number: int, *, ended: bool) -> A2ATaskRow:
    state = "TASK_STATE_COMPLETED" if ended else "TASK_STATE_WORKING"
    return A2ATaskRow(
        id=f"t{number}",
        principal="local",
        agent="helper",
        context_id="c",
        state=state,
        changed_at=float(number),
        ended=ended,
        history=b"[]",
    )


@pytest.fixture
def database(tmp_path: Path) -> sqlite3.Connection:
    return open_database(tmp_path / "toold.db")


def test_ended_tasks_are_deleted_by_age_and_number(
    database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks that ended before a time, and the oldest beyond the limit, are deleted; unfinished ones never."""
    for number in range(6):
        a2a_task_sql.save(database, task(number, ended=number != 0))
    assert a2a_task_sql.delete_expired(database, 3.0) == 2
    monkeypatch.setattr(a2a_task_sql, "MAX_A2A_TASKS", 2)
    assert a2a_task_sql.delete_expired(database, 0.0) == 2
    left = [number for number in range(6) if a2a_task_sql.find(database, f"t{number}", "local") is not None]
    assert left == [0, 5]
    assert [row.id for row in a2a_task_sql.unfinished(database)] == ["t0"]
    assert a2a_task_sql.find(database, "t0", "another") is None
    database.close()
