"""The SQL of A2A's push notifications. Each function takes a few milliseconds, within the caller's transaction."""

import sqlite3
from collections.abc import Sequence
from typing import Final

from ..a2a_push_rows import A2APushDeleted, A2APushProgress, A2APushRow

_COLUMNS: Final = "task, id, url, version, secrets, sent, attempts, next_at"
_MAX_PENDING: Final = 1000
"""The maximum number of rows of one query; the first row of each principal precedes the others."""


def write(connection: sqlite3.Connection, entry: A2APushRow | A2APushDeleted | A2APushProgress) -> None:
    """Stores a change."""
    match entry:
        case A2APushRow():
            connection.execute(
                f"INSERT OR REPLACE INTO a2a_push ({_COLUMNS}, waiting) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "  # noqa: S608
                "?6 < coalesce((SELECT last_event FROM a2a_task WHERE id = ?1), 0))",
                entry,
            )
        case A2APushDeleted():
            connection.execute("DELETE FROM a2a_push WHERE task = ? AND id = ?", entry)
        case A2APushProgress(task, push_id, sent, attempts, next_at):
            connection.execute(
                "UPDATE a2a_push SET sent = ?1, attempts = ?2, next_at = ?3, "
                "waiting = ?1 < (SELECT last_event FROM a2a_task WHERE id = ?4) WHERE task = ?4 AND id = ?5",
                (sent, attempts, next_at, task, push_id),
            )


def of_task(connection: sqlite3.Connection, task: str) -> list[A2APushRow]:
    """Returns the configurations of a task."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM a2a_push WHERE task = ? ORDER BY id", (task,))  # noqa: S608
    return [A2APushRow(*row) for row in rows]


def pending(connection: sqlite3.Connection, of_each: int) -> list[tuple[A2APushRow, str, str]]:
    """Returns the configurations with events to send, with their principals and agents: for each principal, the
    ``of_each`` configurations whose next attempts are due first.
    """
    names = ", ".join(f"a2a_push.{name}" for name in _COLUMNS.split(", "))
    rows: Sequence[Sequence[str]] = connection.execute(
        f"SELECT {_COLUMNS}, principal, agent FROM (SELECT {names}, principal, agent, "  # noqa: S608
        "row_number() OVER (PARTITION BY principal ORDER BY next_at) AS place "
        "FROM a2a_push CROSS JOIN a2a_task ON a2a_task.id = a2a_push.task WHERE waiting AND sent < last_event) "
        "WHERE place <= ? ORDER BY place, next_at LIMIT ?",
        (of_each, _MAX_PENDING),
    ).fetchall()
    return [(A2APushRow(*row[:-2]), row[-2], row[-1]) for row in rows]  # type: ignore[arg-type] # the columns' types


def count(connection: sqlite3.Connection, principal: str) -> int:
    """Returns how many configurations of a principal may have notifications to send, now or later."""
    (number,) = connection.execute(
        "SELECT (SELECT count(*) FROM a2a_task INDEXED BY a2a_task_unfinished "
        "CROSS JOIN a2a_push ON a2a_push.task = a2a_task.id WHERE ended = 0 AND principal = ?1) + "
        "(SELECT count(*) FROM a2a_push INDEXED BY a2a_push_waiting "
        "CROSS JOIN a2a_task ON a2a_task.id = a2a_push.task WHERE waiting AND ended = 1 AND principal = ?1)",
        (principal,),
    ).fetchone()
    return int(number)
