"""The SQL of the journal on PostgreSQL: calls, from before they start until their ids expire.

Functions that write run within the caller's transaction and pipeline, so they fetch nothing. If their effect depends on
stored data, the statement decides, or the caller fetches the cursor after the commit.

Each start has the node's commit number. After a lost connection, it shows which calls the node has started.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
import psycopg

from ..commit_entries import InterruptedCall
from ..store_rows import CallEnd, CallStart, StoredCall, UnstartedCall
from . import pg_detached_sql, pg_run_sql
from .pg_values import arrays, pg_text

Connection = psycopg.Connection[tuple[Any, ...]]
Cursor = psycopg.Cursor[tuple[Any, ...]]
Key = tuple[str, str]

# Replaces the entry of a local call with this id. A local call may run again, and its id may be used for another call.
_START: Final = """
INSERT INTO journal (session_id, request_key, principal, tool, echo_id, arguments_hash, local, state, started_at, child,
                     unfinished, template, node, commit_number)
SELECT session_id, request_key, principal, tool, echo_id, arguments_hash, false, 'started', started_at, child, child,
       template, %s, %s
FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::bool[], %s::bytea[], %s::float8[], %s::bool[],
            %s::text[])
     AS new (session_id, request_key, principal, tool, echo_id, arguments_hash, started_at, child, template)
ON CONFLICT (session_id, request_key) DO UPDATE SET
    tool = excluded.tool, echo_id = excluded.echo_id, arguments_hash = excluded.arguments_hash, local = false,
    state = 'started', started_at = excluded.started_at, ended_at = NULL, result_bytes = 0, result = NULL,
    template = excluded.template, node = excluded.node, commit_number = excluded.commit_number
WHERE journal.local
RETURNING session_id, request_key
"""

_DELETE_REPLACED: Final = """
DELETE FROM journal USING unnest(%s::text[], %s::text[], %s::bool[]) AS again (session_id, request_key, orchestration)
WHERE journal.session_id = again.session_id AND journal.request_key = again.request_key AND child
  AND (state IN ('interrupted', 'expired') OR (state = 'done' AND again.orchestration))
"""

# Changes only calls that have started: if the id belongs to an earlier call that has ended, the earlier call stays.
_END: Final = """
WITH given AS (
    SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::float8[], %s::bytea[])
                  AS given (session_id, request_key, state, at, result)
), ended AS (
    UPDATE journal SET state = given.state, ended_at = given.at, result = given.result, template = NULL,
                       result_bytes = coalesce(octet_length(given.result), 0)
    FROM given
    WHERE journal.session_id = given.session_id AND journal.request_key = given.request_key
      AND journal.state = 'started'
    RETURNING journal.number
), ended_detached AS (
    DELETE FROM detached USING ended WHERE detached.number = ended.number RETURNING detached.number
)
UPDATE input_request SET request = NULL, decision = NULL FROM ended_detached
WHERE input_request.number = ended_detached.number
"""

_DELETE_CLOSED: Final = """
DELETE FROM journal WHERE number IN (
    SELECT number FROM journal WHERE session_closed AND state <> 'started' FOR UPDATE SKIP LOCKED)
"""

# For a call whose tool did not start, whether or not its start was written. An earlier call with this id that has ended
# stays.
_END_UNSTARTED: Final = """
INSERT INTO journal (session_id, request_key, principal, tool, echo_id, arguments_hash, local, state, started_at,
                     ended_at, result, result_bytes, unstarted, node, commit_number)
SELECT session_id, request_key, principal, tool, echo_id, arguments_hash, false,
       CASE WHEN result IS NULL THEN 'expired' ELSE 'done' END, started_at, at, result,
       coalesce(octet_length(result), 0), true, %s, %s
FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::bool[], %s::bytea[], %s::float8[], %s::float8[],
            %s::bytea[])
     AS new (session_id, request_key, principal, tool, echo_id, arguments_hash, started_at, at, result)
ON CONFLICT (session_id, request_key) DO UPDATE SET
    tool = excluded.tool, echo_id = excluded.echo_id, arguments_hash = excluded.arguments_hash, local = false,
    state = excluded.state, started_at = excluded.started_at, ended_at = excluded.ended_at, template = NULL,
    result = excluded.result, result_bytes = excluded.result_bytes, unstarted = true, node = excluded.node,
    commit_number = excluded.commit_number
WHERE journal.local OR journal.state = 'started'
RETURNING session_id, request_key
"""

_LOCAL_RESULTS: Final = """
INSERT INTO journal (session_id, request_key, principal, tool, echo_id, arguments_hash, local, state, started_at,
                     ended_at, result, result_bytes)
SELECT new.session_id, new.request_key, session.principal, new.tool, new.echo_id, new.arguments_hash, true, 'done',
       new.at, new.at, new.result, octet_length(new.result)
FROM unnest(%s::text[], %s::text[], %s::text[], %s::bool[], %s::bytea[], %s::float8[], %s::bytea[])
     AS new (session_id, request_key, tool, echo_id, arguments_hash, at, result)
JOIN session ON session.id = new.session_id
ON CONFLICT (session_id, request_key) DO UPDATE SET
    tool = excluded.tool, echo_id = excluded.echo_id, arguments_hash = excluded.arguments_hash,
    started_at = excluded.started_at, ended_at = excluded.ended_at, result = excluded.result,
    result_bytes = excluded.result_bytes
WHERE journal.local
"""

_WRITTEN: Final = """
SELECT session_id, request_key FROM journal JOIN unnest(%s::text[], %s::text[]) AS asked (session_id, request_key)
    USING (session_id, request_key)
WHERE node = %s AND commit_number = %s
"""


def key_of(call: CallStart | CallEnd | InterruptedCall | StoredCall) -> Key:
    """Returns the key of a call's row: its session and its request, as stored."""
    return pg_text(call.session_id), pg_text(call.request_key)


def start(connection: Connection, calls: Sequence[CallStart], node: str, commit_number: int) -> Cursor:
    """Writes the starts of calls with different keys. The cursor has the keys of the calls that may start; the ids of
    the other calls are already known.
    """
    replaced = [(*key_of(call), call.orchestration) for call in calls if call.replace]
    if replaced:
        connection.execute(_DELETE_REPLACED, arrays(replaced))
    # In the order of the keys, so that two nodes that start the same calls wait for each other instead of deadlocking.
    rows = sorted(_started(call) for call in calls)
    started = connection.execute(_START, (node, commit_number, *arrays(rows)))
    pg_run_sql.insert(connection, calls, node, commit_number)
    pg_detached_sql.insert(connection, calls, node, commit_number)
    return started


def _started(call: CallStart) -> tuple[Any, ...]:
    row = call.row
    template = msgspec.json.encode(row).decode()
    return (
        *(*key_of(call), pg_text(row.principal), pg_text(row.tool), call.echo_id, call.arguments_hash),
        *(row.started_at, call.child, template),
    )


def written(connection: Connection, keys: Sequence[Key], node: str, commit_number: int) -> set[Key]:
    """Returns the calls among these that a commit of a node has written."""
    if not keys:
        return set()
    return set(connection.execute(_WRITTEN, (*arrays(keys), node, commit_number)).fetchall())


def end(connection: Connection, calls: Iterable[CallEnd | InterruptedCall], *, max_bytes: int) -> None:
    """Writes the ends and results of calls; a result of more than ``max_bytes`` is not stored."""
    ends: dict[Key, tuple[Any, ...]] = {}
    for call in calls:
        result = call.result
        if result is not None and len(result) <= max_bytes:
            state = "done"
        else:
            state, result = "expired" if isinstance(call, CallEnd) else "interrupted", None
        ends.setdefault(key_of(call), (state, call.at, result))
    if ends:
        connection.execute(_END, arrays([(*key, *end) for key, end in sorted(ends.items(), key=lambda item: item[0])]))
        connection.execute(_DELETE_CLOSED)


def end_unstarted(
    connection: Connection,
    calls: Sequence[tuple[CallEnd, UnstartedCall]],
    node: str,
    commit_number: int,
    *,
    max_bytes: int,
) -> Cursor:
    """Writes the ends and results of calls whose tools did not start, with different keys, even if their starts were
    not written. The cursor has the keys of those that were written; the others belong to earlier calls.
    """
    rows: list[tuple[Any, ...]] = []
    for call, content in calls:
        row, result = call.row, call.result
        rows.append(
            (
                *(*key_of(call), pg_text(row.principal), pg_text(row.tool), content.echo_id, content.arguments_hash),
                *(row.started_at, call.at, None if result is None or len(result) > max_bytes else result),
            )
        )
    rows.sort(key=lambda row: (row[0], row[1]))
    return connection.execute(_END_UNSTARTED, (node, commit_number, *arrays(rows)))


def persist_local_results(connection: Connection, calls: Iterable[StoredCall], *, max_bytes: int) -> None:
    """Writes results of local calls, of at most ``max_bytes`` each, if their session is stored."""
    rows = {
        key_of(call): (pg_text(call.tool), call.echo_id, call.arguments_hash, call.at, call.result)
        for call in calls
        if call.result is not None and len(call.result) <= max_bytes
    }
    if rows:
        ordered = sorted(rows.items(), key=lambda item: item[0])
        connection.execute(_LOCAL_RESULTS, arrays([(*key, *fields) for key, fields in ordered]))


# A journalled call stays without its result; a local call is deleted.
_DELETE_RESULTS: Final = (
    "DELETE FROM journal WHERE local AND number = ANY(%(numbers)s)",
    """UPDATE journal SET state = 'expired', result_bytes = 0, result = NULL
       WHERE NOT local AND number = ANY(%(numbers)s)""",
)
_ACKNOWLEDGE: Final = (
    "DELETE FROM journal WHERE session_id = %(session)s AND request_key = ANY(%(keys)s) AND local AND state = 'done'",
    """UPDATE journal SET state = 'expired', result_bytes = 0, result = NULL
       WHERE session_id = %(session)s AND request_key = ANY(%(keys)s) AND state IN ('done', 'interrupted')""",
)


def acknowledge(connection: Connection, session_id: str, request_keys: Iterable[str]) -> None:
    """Deletes results that their client has acknowledged; the ids of journalled calls stay known."""
    values = {"session": pg_text(session_id), "keys": [pg_text(key) for key in request_keys]}
    for statement in _ACKNOWLEDGE:
        connection.execute(statement, values)


# --- limits ----------------------------------------------------------------------------------------------------------

_OVER: Final = """
SELECT principal, sum(bytes)::bigint - %(bytes)s, sum(unfinished_bytes)::bigint - %(unfinished)s FROM kept
WHERE principal = ANY(%(principals)s) GROUP BY principal
HAVING sum(bytes) > %(bytes)s OR sum(unfinished_bytes) > %(unfinished)s
"""


def over_limits(
    connection: Connection, principals: Iterable[str], *, results_bytes: int, unfinished_bytes: int
) -> Cursor:
    """Queries the principals whose results exceed a limit: name, excess, excess of unfinished runs."""
    names = sorted({pg_text(principal) for principal in principals})
    return connection.execute(_OVER, {"principals": names, "bytes": results_bytes, "unfinished": unfinished_bytes})


def delete_oldest_results(connection: Connection, principal: str, excess: int, unfinished_excess: int) -> None:
    """Deletes the oldest results of a principal, until these bytes are freed. Results of unfinished runs are counted
    separately, and their detached calls are marked. Fetches, so it cannot run in a pipeline.
    """
    for unfinished, size in ((False, excess), (True, unfinished_excess)):
        if size <= 0:
            continue
        rows = connection.execute(
            "SELECT number FROM (SELECT number, sum(result_bytes) OVER (ORDER BY ended_at, number) - result_bytes "
            "AS before FROM journal WHERE principal = %s AND state = 'done' AND unfinished = %s) AS oldest "
            "WHERE before < %s",
            (principal, unfinished, size),
        )
        numbers = [number for (number,) in rows]
        if unfinished:
            pg_run_sql.drop(connection, numbers)
        for statement in _DELETE_RESULTS:
            connection.execute(statement, {"numbers": numbers})


def delete_expired(
    connection: Connection, *, results_before: float, ids_before: float, runs_before: float, rows: int
) -> int:
    """Deletes results, ids, sessions and runs that have expired by the store's clock, up to ``rows`` of each. The
    children of runs that have not ended stay. Returns the largest of these
    numbers.
    """
    numbers = [
        number
        for (number,) in connection.execute(
            "SELECT number FROM journal WHERE state = 'done' AND ended_at < %s AND NOT unfinished "
            "LIMIT %s FOR UPDATE SKIP LOCKED",
            (results_before, rows),
        )
    ]
    for statement in _DELETE_RESULTS:
        connection.execute(statement, {"numbers": numbers})
    ids = connection.execute(
        "DELETE FROM journal WHERE number IN (SELECT number FROM journal WHERE state IN ('expired', 'interrupted') "
        "AND ended_at < %s AND NOT unfinished LIMIT %s FOR UPDATE SKIP LOCKED)",
        (ids_before, rows),
    ).rowcount
    sessions = connection.execute(
        "DELETE FROM session WHERE id IN (SELECT id FROM session WHERE seen_at < %s "
        "AND NOT EXISTS (SELECT 1 FROM journal WHERE session_id = session.id) LIMIT %s FOR UPDATE SKIP LOCKED)",
        (ids_before, rows),
    ).rowcount
    runs = pg_run_sql.delete_expired(connection, runs_before, rows)
    return max(len(numbers), ids, sessions, runs)
