"""Stored tasks of A2A."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from toold.store.a2a_task_rows import A2AEarlier, A2AEvent, A2AMessageRow, A2ATaskQuery, A2ATaskRow
from toold.store.sqlite import a2a_push_sql, a2a_task_sql
from toold.store.sqlite.store_schema import STEPS, open_database


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
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = open_database(tmp_path / "toold.db")
    yield connection
    connection.close()


def test_ended_tasks_are_deleted_by_age_and_number(
    database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks that ended before a time, and the oldest beyond the limit, are deleted; unfinished ones never."""
    for number in range(6):
        a2a_task_sql.save(database, task(number, ended=number != 0))
    assert a2a_task_sql.delete_expired(database, 3.0, 0.0) == 2
    monkeypatch.setattr(a2a_task_sql, "MAX_A2A_TASKS", 2)
    assert a2a_task_sql.delete_expired(database, 0.0, 0.0) == 2
    left = [number for number in range(6) if a2a_task_sql.find(database, f"t{number}", "local") is not None]
    assert left == [0, 5]
    assert [row.id for row in a2a_task_sql.unfinished(database)] == ["t0"]
    assert a2a_task_sql.find(database, "t0", "another") is None


def test_pieces_are_deleted_with_the_end(database: sqlite3.Connection) -> None:
    """The pieces of an answer are deleted once the task has ended, and all events with the task."""
    pieces = (A2AEvent(1, b"{}", partial=True), A2AEvent(2, b"{}"))
    a2a_task_sql.save(database, msgspec.structs.replace(task(1, ended=False), last_event=2, new_events=pieces))
    assert [event.number for event in a2a_task_sql.events(database, "t1", 0)] == [1, 2]
    ended = msgspec.structs.replace(task(1, ended=True), last_event=3, new_events=(A2AEvent(3, b"{}"),))
    a2a_task_sql.save(database, ended)
    assert [event.number for event in a2a_task_sql.events(database, "t1", 0)] == [2, 3]
    assert a2a_task_sql.delete_expired(database, 9.0, 0.0) == 1
    assert a2a_task_sql.events(database, "t1", 0) == []


def test_a_page_ends_at_its_bytes(database: sqlite3.Connection) -> None:
    """The history of a page's tasks has at most ``max_bytes``, unless the first has more; pages have all tasks."""
    history = b"[" + b" " * 98 + b"]"
    for number in range(5):
        a2a_task_sql.save(database, msgspec.structs.replace(task(number, ended=True), history=history))
    query = A2ATaskQuery(principal="local", agent="helper", limit=4, max_bytes=250)
    first = a2a_task_sql.page(database, query)
    assert ([row.id for row in first.rows], first.total, first.more) == (["t4", "t3"], 5, True)
    last = first.rows[-1]
    rest = a2a_task_sql.page(
        database, msgspec.structs.replace(query, before=(last.changed_at, last.number), max_bytes=300)
    )
    assert ([row.id for row in rest.rows], rest.more) == (["t2", "t1", "t0"], False)
    single = a2a_task_sql.page(database, msgspec.structs.replace(query, max_bytes=1))
    assert ([row.id for row in single.rows], single.more) == (["t4"], True)
    without = a2a_task_sql.page(database, msgspec.structs.replace(query, max_bytes=10, with_history=False))
    assert ([row.history for row in without.rows], without.more) == ([b"[]"] * 4, True)


def test_a_look_at_events_is_bounded_in_bytes(database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the events that fit into ``MAX_EVENT_BYTES``, or one that is larger; the next looks have the others."""
    monkeypatch.setattr(a2a_task_sql, "MAX_EVENT_BYTES", 100)
    bodies = (b"x" * 40, b"x" * 60, b"x" * 300, b"x")
    added = tuple(A2AEvent(number, body) for number, body in enumerate(bodies, 1))
    a2a_task_sql.save(database, msgspec.structs.replace(task(1, ended=True), last_event=4, new_events=added))
    looks = [[event.number for event in a2a_task_sql.events(database, "t1", after)] for after in (0, 2, 3, 4)]
    assert looks == [[1, 2], [3], [4], []]


def test_the_list_of_unfinished_tasks_has_no_history(database: sqlite3.Connection) -> None:
    """The history is not read, and saving such a row keeps it."""
    a2a_task_sql.save(database, msgspec.structs.replace(task(1, ended=False), history=b"[1]"))
    (row,) = a2a_task_sql.unfinished(database)
    assert row.history == b""
    a2a_task_sql.save(database, msgspec.structs.replace(row, state="TASK_STATE_INPUT_REQUIRED"))
    stored = a2a_task_sql.find(database, "t1", "local")
    assert stored is not None
    assert (stored.state, stored.history) == ("TASK_STATE_INPUT_REQUIRED", b"[1]")


def test_configurations_from_before_schema_25_are_sent(tmp_path: Path) -> None:
    """Those with something to send are found after the migration, and those that are done are not."""
    with closing(open_database(tmp_path / "toold.db", STEPS[:24])) as connection:
        for name, last in (("t1", 3), ("t2", 4)):
            connection.execute(
                "INSERT INTO a2a_task (id, principal, agent, context_id, state, changed_at, ended, history, "
                "last_event) VALUES (?, 'local', 'helper', 'c', 'TASK_STATE_COMPLETED', 1, 1, x'', ?)",
                (name, last),
            )
            push = (name, "c", "https://hook.example/", "1.0", b"", 3, 0, 0)
            connection.execute("INSERT INTO a2a_push VALUES (?, ?, ?, ?, ?, ?, ?, ?)", push)
    with closing(open_database(tmp_path / "toold.db")) as connection:
        assert [row.task for row, _, _ in a2a_push_sql.pending(connection, 9)] == ["t2"]


def test_messages_outlive_their_tasks(database: sqlite3.Connection) -> None:
    """A message leads to its task until it is too old and the task is deleted; after the task's end it stays known."""
    message = A2AMessageRow(key=b"k", content=b"what it says")
    a2a_task_sql.save(database, msgspec.structs.replace(task(1, ended=False), message=message))
    assert a2a_task_sql.delete_expired(database, 9.0, 9.0) == 0
    a2a_task_sql.save(database, task(1, ended=True))
    assert a2a_task_sql.delete_expired(database, 9.0, 0.0) == 1
    known = a2a_task_sql.earlier(database, b"k", "c", "local")
    assert known == A2AEarlier("t1", b"what it says", conversation=False)
    assert a2a_task_sql.delete_expired(database, 9.0, 9.0) == 1
    assert a2a_task_sql.earlier(database, b"k", "c", "local").task_id is None
