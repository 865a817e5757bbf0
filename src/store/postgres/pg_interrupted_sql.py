"""The SQL of calls that a dead node had started and not ended. Runs in the transaction that declares the node dead."""

from collections.abc import Callable
from typing import Any

import psycopg

from ..commit_entries import InterruptedCall
from ..interrupted_calls import answer_of_creator, interrupted_call, template_of
from . import pg_detached_sql
from .pg_values import pg_text, text_of

Connection = psycopg.Connection[tuple[Any, ...]]


def interrupted_calls(
    connection: Connection, node: str, at: float, *, unix_time: Callable[[float], float]
) -> list[InterruptedCall]:
    """Returns the calls of a dead node that have started and not ended, except detached ones, which another node
    adopts. ``at``: the present time of the store's clock; ``unix_time`` converts times of that clock.
    """
    rows = connection.execute(
        "SELECT session_id, request_key, child, template FROM journal WHERE node = %s AND state = 'started' "
        "AND NOT EXISTS (SELECT 1 FROM detached WHERE detached.number = journal.number) ORDER BY number",
        (node,),
    ).fetchall()
    calls = []
    for session_id, key, child, template in rows:
        row = template_of(template)
        # A child runs again with its parent, and finds the detached call that it created by its run.
        answer = None if row is None or child else _answer(connection, row.id, unix_time)
        calls.append(interrupted_call(text_of(session_id), text_of(key), at, row, answer))
    return calls


def release_detached(connection: Connection, node: str) -> None:
    """Records that no node runs the detached calls of a dead node any longer."""
    connection.execute(
        "UPDATE journal SET node = NULL FROM detached WHERE detached.number = journal.number "
        "AND journal.node = %s AND journal.state = 'started'",
        (node,),
    )


def _answer(connection: Connection, call_id: str, unix_time: Callable[[float], float]) -> dict[str, Any] | None:
    """The answer of a call that created a detached call; None for any other."""
    found = connection.execute(
        "SELECT created FROM run WHERE call_id = %s AND created IS NOT NULL", (pg_text(call_id),)
    ).fetchone()
    if found is None:
        return None
    created = text_of(found[0])
    return answer_of_creator(created, pg_detached_sql.find(connection, created), unix_time)
