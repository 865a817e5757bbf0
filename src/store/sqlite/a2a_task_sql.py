"""The SQL of A2A's tasks. Each function takes a few milliseconds and runs within the caller's transaction."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Final

import msgspec

from ..a2a_task_rows import A2AEarlier, A2AEvent, A2ATaskPage, A2ATaskQuery, A2ATaskRow
from ..store_limits import MAX_A2A_TASKS, MAX_EVENT_BYTES, MAX_EVENTS
from .audit_sql import SLICE

_COLUMNS: Final = "number, id, principal, agent, context_id, state, changed_at, ended, history, last_event"


def save(connection: sqlite3.Connection, row: A2ATaskRow) -> None:
    """Stores a new task, or the changes of an existing one."""
    fixed = (row.id, row.principal, row.agent, row.context_id)
    connection.execute(
        "INSERT INTO a2a_task (id, principal, agent, context_id, state, changed_at, ended, history, last_event) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET state = excluded.state, "
        "changed_at = excluded.changed_at, ended = excluded.ended, last_event = excluded.last_event, "
        "history = CASE length(excluded.history) WHEN 0 THEN history ELSE excluded.history END",
        (*fixed, row.state, row.changed_at, row.ended, row.history, row.last_event),
    )
    if row.message is not None:
        connection.execute(
            "INSERT INTO a2a_message (key, task, content, at) VALUES (?, ?, ?, ?)",
            (row.message.key, row.id, row.message.content, row.changed_at),
        )
    if row.ended:
        connection.execute("DELETE FROM a2a_event WHERE task = ? AND partial = 1", (row.id,))
    connection.executemany(
        "INSERT OR REPLACE INTO a2a_event (task, number, partial, event) VALUES (?, ?, ?, ?)",
        [(row.id, event.number, event.partial, event.body) for event in row.new_events],
    )
    if row.new_events:
        connection.execute("UPDATE a2a_push SET waiting = 1 WHERE task = ?", (row.id,))


def find(connection: sqlite3.Connection, task_id: str, principal: str) -> A2ATaskRow | None:
    """Returns a principal's task; None if it does not exist or belongs to another principal."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM a2a_task WHERE id = ? AND principal = ?",  # noqa: S608 - a constant
        (task_id, principal),
    ).fetchone()
    return None if row is None else _row(row)


def earlier(connection: sqlite3.Connection, message_key: bytes, conversation_id: str, principal: str) -> A2AEarlier:
    """Returns the stored data about a message that arrives."""
    message = connection.execute("SELECT task, content FROM a2a_message WHERE key = ?", (message_key,)).fetchone()
    conversation = connection.execute(
        "SELECT 1 FROM conversation WHERE id = ? AND principal = ?", (conversation_id, principal)
    ).fetchone()
    task_id, content = message or (None, b"")
    return A2AEarlier(task_id, content, conversation is not None)


def unfinished(connection: sqlite3.Connection) -> list[A2ATaskRow]:
    """Returns the tasks of all principals that have not ended, without their history."""
    columns = _COLUMNS.replace("history", "x''")
    rows = connection.execute(f"SELECT {columns} FROM a2a_task WHERE ended = 0 ORDER BY number")  # noqa: S608
    return [_row(row) for row in rows]


def events(connection: sqlite3.Connection, task_id: str, after: int) -> list[A2AEvent]:
    """Returns the first events of a task after a number, in order: up to ``MAX_EVENTS`` and ``MAX_EVENT_BYTES``."""
    cursor = connection.execute(
        "SELECT number, event, partial FROM a2a_event WHERE task = ? AND number > ? ORDER BY number LIMIT ?",
        (task_id, after, MAX_EVENTS),
    )
    read: list[A2AEvent] = []
    left = MAX_EVENT_BYTES
    with closing(cursor):
        for number, body, partial in cursor:
            left -= len(body)
            if read and left < 0:
                break
            read.append(A2AEvent(number, body, bool(partial)))
    return read


def page(connection: sqlite3.Connection, query: A2ATaskQuery) -> A2ATaskPage:
    """Returns a page of tasks."""
    conditions, values = ["principal = ?", "agent = ?"], [query.principal, query.agent]
    for condition, value in (("context_id = ?", query.context_id), ("state = ?", query.state)):
        if value is not None:
            conditions.append(condition)
            values.append(value)
    wanted: list[object] = list(values)
    if query.changed_after is not None:
        conditions.append("changed_at >= ?")
        wanted.append(query.changed_after)
    where = " AND ".join(conditions)
    (total,) = connection.execute(f"SELECT count(*) FROM a2a_task WHERE {where}", wanted).fetchone()  # noqa: S608
    if query.before is not None:
        where += " AND (changed_at, number) < (?, ?)"
        wanted += query.before
    columns = _COLUMNS if query.with_history else _COLUMNS.replace("history", "x'5b5d'")  # an empty list
    cursor = connection.execute(
        f"SELECT {columns} FROM a2a_task WHERE {where} ORDER BY changed_at DESC, number DESC LIMIT ?",  # noqa: S608
        (*wanted, query.limit + 1),
    )
    rows: list[A2ATaskRow] = []
    left = query.max_bytes
    more = False
    with closing(cursor):
        for row in map(_row, cursor):
            left -= len(row.history)
            more = len(rows) == query.limit or (bool(rows) and left < 0)
            if more:
                break
            rows.append(row)
    return A2ATaskPage(rows, int(total), more)


def delete_expired(connection: sqlite3.Connection, before: float, messages_before: float) -> int:
    """Deletes a slice of the tasks that ended before a Unix time or exceed ``MAX_A2A_TASKS``, and a slice of the
    messages older than ``messages_before`` whose tasks are deleted. Returns the larger of the two numbers.
    """
    (count,) = connection.execute("SELECT count(*) FROM a2a_task").fetchone()
    oldest = connection.execute(
        "SELECT id, changed_at FROM a2a_task WHERE ended = 1 ORDER BY changed_at LIMIT ?", (SLICE,)
    )
    excess = count - MAX_A2A_TASKS
    expired = [(row[0],) for place, row in enumerate(oldest) if row[1] < before or place < excess]
    connection.executemany("DELETE FROM a2a_event WHERE task = ?", expired)
    connection.executemany("DELETE FROM a2a_push WHERE task = ?", expired)
    connection.executemany("DELETE FROM a2a_task WHERE id = ?", expired)
    messages = connection.execute(
        "DELETE FROM a2a_message WHERE key IN (SELECT key FROM a2a_message WHERE at < ? "
        "AND NOT EXISTS (SELECT 1 FROM a2a_task WHERE id = a2a_message.task) LIMIT ?)",
        (messages_before, SLICE),
    ).rowcount
    return max(len(expired), messages)


def _row(columns: Sequence[object]) -> A2ATaskRow:
    number, task_id, principal, agent, context_id, state, changed_at, ended, history, last_event = columns
    fields = {"id": task_id, "principal": principal, "agent": agent, "context_id": context_id, "state": state}
    more = {"changed_at": changed_at, "ended": bool(ended), "history": history, "number": number}
    more |= {"last_event": last_event}
    return msgspec.convert(fields | more, A2ATaskRow)
