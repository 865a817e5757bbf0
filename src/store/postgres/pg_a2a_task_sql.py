"""The SQL of A2A's tasks on PostgreSQL. Functions that write run in the caller's pipeline, and fetch nothing."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
import psycopg

from ..a2a_task_rows import A2AEarlier, A2AEvent, A2ATaskPage, A2ATaskQuery, A2ATaskRow
from ..store_limits import MAX_A2A_TASKS, MAX_EVENT_BYTES, MAX_EVENTS
from ..store_rows import CallStart
from . import pg_conversation_sql
from .pg_values import pg_text, text_of

Connection = psycopg.Connection[tuple[Any, ...]]

SLICE: Final = 500
"""Rows that one step of retention deletes."""

_COLUMNS: Final = "number, id, principal, agent, context_id, state, changed_at, ended, history, last_event"
_SAVE: Final = """
INSERT INTO a2a_task (id, principal, agent, context_id, state, changed_at, ended, history, last_event, node)
SELECT %s, %s, %s, %s, %s, %s::float8, %s::bool, %s::bytea, %s::bigint, %s {}
ON CONFLICT (id) DO UPDATE SET state = excluded.state, changed_at = excluded.changed_at, ended = excluded.ended,
    last_event = excluded.last_event, node = excluded.node,
    history = CASE octet_length(excluded.history) WHEN 0 THEN a2a_task.history ELSE excluded.history END
"""
_UNFINISHED: Final = """
SELECT {} FROM a2a_task WHERE id IN (
    SELECT task.id FROM a2a_task task
    LEFT JOIN (detached JOIN journal ON journal.number = detached.number AND journal.state = 'started')
        ON detached.call_id = task.id
    WHERE NOT task.ended AND CASE
        WHEN journal.number IS NOT NULL THEN coalesce(journal.node = %(node)s, false)
        ELSE task.node = %(node)s
             OR NOT EXISTS (SELECT FROM node WHERE node.epoch = task.node AND node.state <> 'dead')
    END)
ORDER BY number
"""
_SAVE_MESSAGE: Final = "INSERT INTO a2a_message (key, task, content, at) SELECT %s::bytea, %s, %s::bytea, %s::float8 {}"
_IF_STARTED: Final = (
    "FROM journal WHERE session_id = %s AND request_key = %s AND journal.node = %s AND commit_number = %s"
)


def save_started(connection: Connection, calls: Iterable[CallStart], node: str, commit_number: int) -> None:
    """Stores the tasks of new calls, except calls that may not start and that this commit has not written."""
    for call in calls:
        if (row := call.task) is None:
            continue
        started = (pg_text(call.session_id), pg_text(call.request_key), node, commit_number)
        connection.execute(_SAVE.format(_IF_STARTED), (*_values(row, node), *started))
        if row.message is not None:
            message = (row.message.key, pg_text(row.id), row.message.content, row.changed_at)
            connection.execute(_SAVE_MESSAGE.format(_IF_STARTED), (*message, *started))


def _values(row: A2ATaskRow, node: str) -> tuple[object, ...]:
    texts = (row.id, row.principal, row.agent, row.context_id, row.state)
    return (*map(pg_text, texts), row.changed_at, row.ended, row.history, row.last_event, node)


def save(connection: Connection, row: A2ATaskRow, node: str) -> None:
    """Stores a new task of a node, or the changes of a task."""
    task = pg_text(row.id)
    connection.execute(_SAVE.format(""), _values(row, node))
    if row.message is not None:
        message = (row.message.key, task, row.message.content, row.changed_at)
        connection.execute(_SAVE_MESSAGE.format(""), message)
    if row.ended:
        connection.execute("DELETE FROM a2a_event WHERE task = %s AND partial", (task,))
    for event in row.new_events:
        connection.execute(
            "INSERT INTO a2a_event (task, number, partial, event) VALUES (%s, %s, %s, %s) "
            "ON CONFLICT (task, number) DO UPDATE SET partial = excluded.partial, event = excluded.event",
            (task, event.number, event.partial, event.body),
        )
    if row.new_events:
        connection.execute("UPDATE a2a_push SET waiting = true WHERE task = %s", (task,))


def find(connection: Connection, task_id: str, principal: str) -> A2ATaskRow | None:
    """Returns a principal's task; None if it does not exist or belongs to another principal."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM a2a_task WHERE id = %s AND principal = %s",
        (pg_text(task_id), pg_text(principal)),
    ).fetchone()
    return None if row is None else _row(row)


def earlier(connection: Connection, message_key: bytes, conversation_id: str, principal: str) -> A2AEarlier:
    """Returns the stored data about a message that arrives."""
    message = connection.execute("SELECT task, content FROM a2a_message WHERE key = %s", (message_key,)).fetchone()
    task_id, content = message or (None, b"")
    return A2AEarlier(
        None if task_id is None else text_of(task_id),
        content,
        pg_conversation_sql.has(connection, conversation_id, principal),
    )


def unfinished(connection: Connection, node: str) -> list[A2ATaskRow]:
    """Returns the tasks of all principals that have not ended, without their history. A task is included if this node
    runs its call, or if its call has ended on this node or on a dead node. The calls of all other tasks run on other
    nodes, or are paused.
    """
    columns = _COLUMNS.replace("history", "''::bytea")
    return [_row(row) for row in connection.execute(_UNFINISHED.format(columns), {"node": node})]


def events(connection: Connection, task_id: str, after: int) -> list[A2AEvent]:
    """Returns the first events of a task after a number, in order: up to ``MAX_EVENTS`` and ``MAX_EVENT_BYTES``."""
    task = pg_text(task_id)
    sizes = connection.execute(
        "SELECT number, octet_length(event) FROM a2a_event WHERE task = %s AND number > %s ORDER BY number LIMIT %s",
        (task, after, MAX_EVENTS),
    )
    last = after
    left = MAX_EVENT_BYTES
    for number, size in sizes:
        left -= size
        if last > after and left < 0:
            break
        last = number
    rows = connection.execute(
        "SELECT number, event, partial FROM a2a_event WHERE task = %s AND number > %s AND number <= %s ORDER BY number",
        (task, after, last),
    )
    return [A2AEvent(number, body, partial) for number, body, partial in rows]


def page(connection: Connection, query: A2ATaskQuery) -> A2ATaskPage:
    """Returns a page of tasks."""
    conditions, values = ["principal = %s", "agent = %s"], [pg_text(query.principal), pg_text(query.agent)]
    for condition, value in (("context_id = %s", query.context_id), ("state = %s", query.state)):
        if value is not None:
            conditions.append(condition)
            values.append(pg_text(value))
    wanted: list[object] = list(values)
    if query.changed_after is not None:
        conditions.append("changed_at >= %s")
        wanted.append(query.changed_after)
    where = " AND ".join(conditions)
    (total,) = connection.execute(f"SELECT count(*) FROM a2a_task WHERE {where}", wanted).fetchone() or (0,)
    if query.before is not None:
        where += " AND (changed_at, number) < (%s, %s)"
        wanted += query.before
    history = "octet_length(history)" if query.with_history else "2"
    listed = connection.execute(
        f"SELECT number, {history} FROM a2a_task WHERE {where} ORDER BY changed_at DESC, number DESC LIMIT %s",
        (*wanted, query.limit + 1),
    ).fetchall()
    numbers: list[int] = []
    left = query.max_bytes
    more = False
    for number, size in listed:
        left -= size
        more = len(numbers) == query.limit or (bool(numbers) and left < 0)
        if more:
            break
        numbers.append(number)
    columns = _COLUMNS if query.with_history else _COLUMNS.replace("history", "'[]'::bytea")
    rows = connection.execute(
        f"SELECT {columns} FROM a2a_task WHERE number = ANY(%s) ORDER BY changed_at DESC, number DESC",
        (numbers,),
    )
    return A2ATaskPage([_row(row) for row in rows], int(total), more)


def delete_expired(connection: Connection, before: float, messages_before: float) -> int:
    """Deletes a slice of the tasks that ended before a Unix time or exceed ``MAX_A2A_TASKS``, and a slice of the
    messages older than ``messages_before`` whose tasks are deleted. Returns the larger of the two numbers.
    """
    (count,) = connection.execute("SELECT count(*) FROM a2a_task").fetchone() or (0,)
    oldest = connection.execute(
        "SELECT id, changed_at FROM a2a_task WHERE ended ORDER BY changed_at LIMIT %s FOR UPDATE SKIP LOCKED", (SLICE,)
    )
    excess = count - MAX_A2A_TASKS
    expired = [task for place, (task, changed_at) in enumerate(oldest) if changed_at < before or place < excess]
    if expired:
        connection.execute("DELETE FROM a2a_event WHERE task = ANY(%s)", (expired,))
        connection.execute("DELETE FROM a2a_push WHERE task = ANY(%s)", (expired,))
        connection.execute("DELETE FROM a2a_task WHERE id = ANY(%s)", (expired,))
    messages = connection.execute(
        "DELETE FROM a2a_message WHERE key IN (SELECT key FROM a2a_message WHERE at < %s "
        "AND NOT EXISTS (SELECT FROM a2a_task WHERE id = a2a_message.task) LIMIT %s)",
        (messages_before, SLICE),
    ).rowcount
    return max(len(expired), messages)


def _row(columns: Sequence[Any]) -> A2ATaskRow:
    number, task_id, principal, agent, context_id, state, changed_at, ended, history, last_event = columns
    texts = {"id": task_id, "principal": principal, "agent": agent, "context_id": context_id, "state": state}
    fields: dict[str, object] = {name: text_of(text) for name, text in texts.items()}
    fields |= {"changed_at": changed_at, "ended": ended, "history": history, "number": number}
    return msgspec.convert(fields | {"last_event": last_event}, A2ATaskRow)
