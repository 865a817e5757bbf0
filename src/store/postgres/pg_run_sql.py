"""The SQL of runs on PostgreSQL. The journal stores the child calls of an orchestration call under its run.

Functions that write run within the caller's transaction and pipeline, and fetch nothing.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import psycopg

from ..store_rows import CallStart
from .pg_values import arrays, pg_text

Connection = psycopg.Connection[tuple[Any, ...]]

# Only calls that this commit has started, and that may have ended in it.
_OF_STARTED: Final = """
JOIN journal ON journal.session_id = new.session_id AND journal.request_key = new.request_key
    AND journal.node = %s AND journal.commit_number = %s
"""
_INSERT: Final = f"""
INSERT INTO run (call_id, principal, tool, run, started_at)
SELECT call_id, new.principal, new.tool, run, new.started_at
FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::float8[])
     AS new (session_id, request_key, call_id, principal, tool, run, started_at) {_OF_STARTED}
ON CONFLICT (call_id) DO NOTHING
"""
# The call that created a detached call has the same run as the detached call, so that either id finds the run.
_INSERT_CREATORS: Final = f"""
INSERT INTO run (call_id, principal, tool, run, started_at, created)
SELECT call_id, new.principal, new.tool, run, new.started_at, created
FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::float8[], %s::text[])
     AS new (session_id, request_key, call_id, principal, tool, run, started_at, created) {_OF_STARTED}
ON CONFLICT (call_id) DO UPDATE SET run = excluded.run, created = excluded.created
"""


def insert(connection: Connection, calls: Sequence[CallStart], node: str, commit_number: int) -> None:
    """Stores the runs of starting calls that can be resumed: orchestration calls that are not child calls, and child
    calls that create a detached call.
    """
    runs = [
        (
            *(pg_text(call.session_id), pg_text(call.request_key), call.row.id, pg_text(call.row.principal)),
            *(pg_text(call.row.tool), pg_text(run or call.row.id), call.row.started_at),
        )
        for call in calls
        if call.orchestration and not call.child
        for run in (None if call.detached is None else call.detached.run,)
    ]
    if runs:
        connection.execute(_INSERT, (*arrays(runs), node, commit_number))
    creators = {
        call.detached.creator: (
            *(pg_text(call.session_id), pg_text(call.request_key), pg_text(call.detached.creator)),
            *(pg_text(call.row.principal), pg_text(call.row.tool), pg_text(call.detached.run or call.row.id)),
            *(call.row.started_at, call.row.id),
        )
        for call in calls
        if call.detached is not None and call.detached.creator is not None
    }
    if creators:
        connection.execute(_INSERT_CREATORS, (*arrays(list(creators.values())), node, commit_number))


# "0" is the character after the slash that separates the names in a nested run.
_OF_RUN: Final = "(session_id = %(run)s OR (session_id > %(run)s || '/' AND session_id < %(run)s || '0'))"
_FINISH: Final = f"UPDATE journal SET unfinished = false WHERE child AND unfinished AND {_OF_RUN}"
_CONTINUE: Final = f"UPDATE journal SET unfinished = true, node = %(node)s WHERE child AND {_OF_RUN}"


def find_run(connection: Connection, call_id: str, principal: str, tool: str) -> str | None:
    """Returns the run of a principal's call of this tool; None if it is unknown.

    The run of a call that started a detached call is that of the detached call, which may continue an earlier run.
    """
    row = connection.execute(
        "SELECT coalesce(detached.run, run.run) FROM run LEFT JOIN run AS detached ON detached.call_id = run.run "
        "WHERE run.call_id = %s AND run.principal = %s AND run.tool = %s",
        (pg_text(call_id), pg_text(principal), pg_text(tool)),
    ).fetchone()
    return None if row is None else str(row[0])


def resume(connection: Connection, call_id: str, run: str, node: str) -> None:
    """Stores the children of this call, which a node runs, under an earlier run from now on. That run is unfinished
    again.
    """
    connection.execute("UPDATE run SET run = %s WHERE call_id = %s", (pg_text(run), pg_text(call_id)))
    connection.execute(_CONTINUE, {"node": node, "run": pg_text(run)})


def finish(connection: Connection, runs: Iterable[str]) -> None:
    """Marks these runs as finished. From now on, the results of their child calls expire like all others."""
    for run in runs:
        connection.execute(_FINISH, {"run": pg_text(run)})


def set_outcome(connection: Connection, call_id: str, outcome: str, stopped_by: str) -> None:
    """Stores the outcome of the run that this call continues."""
    connection.execute(
        "UPDATE run SET outcome = %s, stopped_by = %s WHERE call_id = %s", (outcome, stopped_by, pg_text(call_id))
    )


_FINISHED: Final = """
UPDATE journal SET unfinished = false WHERE unfinished AND node = %s AND split_part(session_id, '/', 1) NOT IN
    (SELECT coalesce(run.run, detached.call_id) FROM detached LEFT JOIN run USING (call_id))
"""


def finish_of_node(connection: Connection, node: str) -> None:
    """For a dead node: marks the runs of its calls as finished, except those of detached calls."""
    connection.execute(_FINISHED, (node,))


_DROP: Final = """
UPDATE detached SET dropped = true WHERE number IN (
    SELECT detached.number FROM detached LEFT JOIN run USING (call_id) WHERE coalesce(run.run, detached.call_id) IN
        (SELECT split_part(session_id, '/', 1) FROM journal WHERE number = ANY(%s)))
"""


def drop(connection: Connection, numbers: Sequence[int]) -> None:
    """Marks the detached calls whose runs have these journal entries: the results of the entries are deleted."""
    connection.execute(_DROP, (list(numbers),))


def delete_expired(connection: Connection, before: float, rows: int) -> int:
    """Deletes up to ``rows`` runs that began before a Unix time and have no stored calls; returns how many."""
    return connection.execute(
        "DELETE FROM run WHERE call_id IN (SELECT call_id FROM run WHERE started_at < %s "
        "AND NOT EXISTS (SELECT 1 FROM journal WHERE session_id = run.run) "
        "AND call_id NOT IN (SELECT call_id FROM detached) LIMIT %s FOR UPDATE SKIP LOCKED)",
        (before, rows),
    ).rowcount
