"""The SQL of A2A's tasks. Each function takes a few milliseconds and runs within the caller's transaction."""

import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

from .audit_sql import SLICE

MAX_A2A_TASKS: Final = 100_000
"""The tasks of all principals that are stored; beyond it, the oldest that have ended are deleted."""

_COLUMNS: Final = "number, id, principal, agent, context_id, state, changed_at, ended, history"


class A2ATaskRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A task of A2A, as it is stored."""

    id: str
    """The id of its detached call."""
    principal: str
    agent: str
    context_id: str
    state: str
    """Of A2A 1.0, as last seen."""
    changed_at: float
    """When it entered the state, as a Unix time in seconds."""
    ended: bool
    """Whether it cannot change."""
    history: bytes
    """JSON that is opaque to the store."""
    number: int = 0
    """Set by the store: tasks in the order of their creation."""


def save(connection: sqlite3.Connection, row: A2ATaskRow) -> None:
    """Stores a new task, or what has changed."""
    connection.execute(
        "INSERT INTO a2a_task (id, principal, agent, context_id, state, changed_at, ended, history) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET state = excluded.state, "
        "changed_at = excluded.changed_at, ended = excluded.ended, history = excluded.history",
        (row.id, row.principal, row.agent, row.context_id, row.state, row.changed_at, row.ended, row.history),
    )


def find(connection: sqlite3.Connection, task_id: str, principal: str) -> A2ATaskRow | None:
    """Returns a principal's task; None if it does not exist or belongs to another principal."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM a2a_task WHERE id = ? AND principal = ?",  # noqa: S608 - a constant
        (task_id, principal),
    ).fetchone()
    return None if row is None else _row(row)


def unfinished(connection: sqlite3.Connection) -> list[A2ATaskRow]:
    """Returns the tasks of all principals that have not ended."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM a2a_task WHERE ended = 0 ORDER BY number")  # noqa: S608
    return [_row(row) for row in rows]


def delete_expired(connection: sqlite3.Connection, before: float) -> int:
    """Deletes a slice of the tasks that ended before a Unix time, or are beyond ``MAX_A2A_TASKS``; returns how many."""
    deleted = connection.execute(
        "DELETE FROM a2a_task WHERE number IN "
        "(SELECT number FROM a2a_task WHERE changed_at < ? AND ended = 1 ORDER BY changed_at LIMIT ?)",
        (before, SLICE),
    ).rowcount
    excess = connection.execute("SELECT max(0, count(*) - ?) FROM a2a_task", (MAX_A2A_TASKS,)).fetchone()[0]
    if excess:
        deleted += connection.execute(
            "DELETE FROM a2a_task WHERE number IN "
            "(SELECT number FROM a2a_task WHERE ended = 1 ORDER BY changed_at LIMIT ?)",
            (min(excess, SLICE),),
        ).rowcount
    return deleted


def _row(columns: Sequence[object]) -> A2ATaskRow:
    number, task_id, principal, agent, context_id, state, changed_at, ended, history = columns
    fields = {"id": task_id, "principal": principal, "agent": agent, "context_id": context_id, "state": state}
    more = {"changed_at": changed_at, "ended": bool(ended), "history": history, "number": number}
    return msgspec.convert(fields | more, A2ATaskRow)
