"""The SQL of A2A's push notifications on PostgreSQL. Functions that write fetch nothing."""

from collections.abc import Sequence
from typing import Any, Final

import psycopg

from ..a2a_push_rows import A2APushDeleted, A2APushProgress, A2APushRow
from .pg_values import pg_text, text_of

Connection = psycopg.Connection[tuple[Any, ...]]

_COLUMNS: Final = "task, id, url, version, secrets, sent, attempts, next_at"
_MAX_PENDING: Final = 1000
"""The maximum number of rows of one query; the first row of each principal precedes the others."""

_SAVE: Final = f"""
INSERT INTO a2a_push ({_COLUMNS}, waiting)
VALUES (%(task)s, %(id)s, %(url)s, %(version)s, %(secrets)s, %(sent)s, %(attempts)s, %(next_at)s,
        %(sent)s < coalesce((SELECT last_event FROM a2a_task WHERE id = %(task)s), 0))
ON CONFLICT (task, id) DO UPDATE SET url = excluded.url, version = excluded.version, secrets = excluded.secrets,
    sent = excluded.sent, attempts = excluded.attempts, next_at = excluded.next_at, waiting = excluded.waiting
"""
_PROGRESS: Final = """
UPDATE a2a_push SET sent = %(sent)s, attempts = %(attempts)s, next_at = %(next_at)s,
    waiting = %(sent)s < coalesce((SELECT last_event FROM a2a_task WHERE id = %(task)s), 0)
WHERE task = %(task)s AND id = %(id)s
"""
# The node that last changed a task sends its notifications, because it knows when there are more. After the death of
# that node, the hash of the task decides which live node sends them. So two nodes rarely send the same notification.
_MINE: Final = """
(a2a_task.node = %(node)s
 OR (NOT EXISTS (SELECT FROM node WHERE node.epoch = a2a_task.node AND node.state = 'live')
     AND mod(abs(hashtext(a2a_task.id)::int8), greatest((SELECT count(*) FROM node WHERE state = 'live'), 1))
         = (SELECT count(*) FROM node WHERE state = 'live' AND epoch < %(node)s)))
"""
_PENDING: Final = f"""
SELECT {_COLUMNS}, principal, agent FROM (
    SELECT {", ".join(f"a2a_push.{name}" for name in _COLUMNS.split(", "))}, principal, agent,
           row_number() OVER (PARTITION BY principal ORDER BY next_at) AS place
    FROM a2a_push JOIN a2a_task ON a2a_task.id = a2a_push.task WHERE waiting AND sent < last_event AND {_MINE}
) AS pending WHERE place <= %(of_each)s ORDER BY place, next_at LIMIT {_MAX_PENDING}
"""
_COUNT: Final = """
SELECT (SELECT count(*) FROM a2a_task JOIN a2a_push ON a2a_push.task = a2a_task.id
        WHERE NOT ended AND principal = %(principal)s)
     + (SELECT count(*) FROM a2a_push JOIN a2a_task ON a2a_task.id = a2a_push.task
        WHERE waiting AND ended AND principal = %(principal)s)
"""


def write(connection: Connection, entry: A2APushRow | A2APushDeleted | A2APushProgress) -> None:
    """Stores a change, within the caller's transaction."""
    key = {"task": pg_text(entry.task), "id": pg_text(entry.id)}
    match entry:
        case A2APushRow():
            texts = {"url": pg_text(entry.url), "version": pg_text(entry.version)}
            connection.execute(_SAVE, entry._asdict() | key | texts)
        case A2APushDeleted():
            connection.execute("DELETE FROM a2a_push WHERE task = %(task)s AND id = %(id)s", key)
        case A2APushProgress():
            connection.execute(_PROGRESS, entry._asdict() | key)


def of_task(connection: Connection, task: str) -> list[A2APushRow]:
    """Returns the configurations of a task."""
    rows = connection.execute(
        f'SELECT {_COLUMNS} FROM a2a_push WHERE task = %s ORDER BY id COLLATE "C"',
        (pg_text(task),),
    )
    return [_row(row) for row in rows]


def pending(connection: Connection, of_each: int, node: str) -> list[tuple[A2APushRow, str, str]]:
    """Returns the configurations with events that a node must send, with their principals and agents: for each
    principal, the ``of_each`` configurations whose next attempts are due first.
    """
    rows = connection.execute(_PENDING, {"of_each": of_each, "node": node})
    return [(_row(columns), text_of(principal), text_of(agent)) for *columns, principal, agent in rows]


def count(connection: Connection, principal: str) -> int:
    """Returns how many configurations of a principal may have notifications to send, now or later."""
    (number,) = connection.execute(_COUNT, {"principal": pg_text(principal)}).fetchone() or (0,)
    return int(number)


def _row(columns: Sequence[Any]) -> A2APushRow:
    task, push_id, url, version, *rest = columns
    return A2APushRow(text_of(task), text_of(push_id), text_of(url), text_of(version), *rest)
