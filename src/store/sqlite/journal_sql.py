"""The SQL of the journal: calls, from before they start until their ids expire. ``session_sql`` reads them.

Each function takes a few milliseconds and runs within the caller's transaction.
"""

import functools
import itertools
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from ..audit_rows import Values
from ..commit_entries import InterruptedCall
from ..store_limits import ID_TTL_S, ROWS_PER_STATEMENT
from ..store_rows import CallEnd, CallStart, StoredCall, UnstartedCall
from . import detached_sql, run_sql
from .audit_sql import SLICE

# --- calls -----------------------------------------------------------------------------------------------------------

# Replaces the entry of a local call with this id. A local call may run again, and its id may be used for another call.
_START = """
INSERT INTO journal (session_id, request_key, principal, tool, echo_id, arguments_hash, local, state, started_at, child,
                     unfinished)
VALUES {}
ON CONFLICT (session_id, request_key) DO UPDATE SET
    tool = excluded.tool, echo_id = excluded.echo_id, arguments_hash = excluded.arguments_hash, local = 0,
    state = 'started', started_at = excluded.started_at, ended_at = NULL, result_bytes = 0
WHERE local
"""

_TEMPLATES = """
WITH call (session_id, request_key, audit_row) AS (VALUES {})
INSERT INTO template (number, audit_row)
SELECT journal.number, call.audit_row FROM call CROSS JOIN journal USING (session_id, request_key)
"""

# Changes only calls that have started: an earlier call with this id that has ended stays.
_END = """
WITH ended (session_id, request_key, state, at, result_bytes) AS (VALUES {})
UPDATE journal SET state = ended.state, ended_at = ended.at, result_bytes = ended.result_bytes
FROM ended
WHERE journal.session_id = ended.session_id AND journal.request_key = ended.request_key AND journal.state = 'started'
"""

# Runs before _END: the state distinguishes these calls from those that had ended before.
_RESULTS = """
WITH ended (session_id, request_key, result) AS (VALUES {})
INSERT INTO result (number, result)
SELECT journal.number, ended.result FROM ended CROSS JOIN journal USING (session_id, request_key)
WHERE journal.state = 'started'
"""

# For a call whose tool did not start, whether or not its start was written. An earlier call with this id that has ended
# stays.
_END_UNSTARTED = """
INSERT INTO journal (session_id, request_key, principal, tool, echo_id, arguments_hash, local, state, started_at,
                     ended_at, result_bytes, unstarted)
VALUES {}
ON CONFLICT (session_id, request_key) DO UPDATE SET
    tool = excluded.tool, echo_id = excluded.echo_id, arguments_hash = excluded.arguments_hash, local = 0,
    state = excluded.state, started_at = excluded.started_at, ended_at = excluded.ended_at,
    result_bytes = excluded.result_bytes, unstarted = 1
WHERE local OR state = 'started'
RETURNING session_id, request_key
"""

_UNSTARTED_RESULTS = """
WITH ended (session_id, request_key, result) AS (VALUES {})
INSERT OR REPLACE INTO result (number, result)
SELECT journal.number, ended.result FROM ended CROSS JOIN journal USING (session_id, request_key)
"""

_INSERT_LOCAL = """
WITH answer (session_id, request_key, tool, echo_id, arguments_hash, at, result_bytes) AS (VALUES {})
INSERT INTO journal (session_id, request_key, principal, tool, echo_id, arguments_hash, local, state, started_at,
                     ended_at, result_bytes)
SELECT answer.session_id, answer.request_key, session.principal, answer.tool, answer.echo_id, answer.arguments_hash,
       1, 'done', answer.at, answer.at, answer.result_bytes
FROM answer JOIN session ON session.id = answer.session_id WHERE true
ON CONFLICT (session_id, request_key) DO UPDATE SET
    tool = excluded.tool, echo_id = excluded.echo_id, arguments_hash = excluded.arguments_hash,
    started_at = excluded.started_at, ended_at = excluded.ended_at,
    result_bytes = excluded.result_bytes
WHERE local
"""

_LOCAL_RESULTS = """
WITH answer (session_id, request_key, result) AS (VALUES {})
INSERT OR REPLACE INTO result (number, result)
SELECT journal.number, answer.result FROM answer CROSS JOIN journal USING (session_id, request_key)
WHERE journal.local
"""

_DELETE_REPLACED = """
WITH replaced (session_id, request_key) AS (VALUES {})
DELETE FROM journal WHERE state IN ('interrupted', 'expired') AND child
AND (session_id, request_key) IN (SELECT session_id, request_key FROM replaced)
"""

# A call whose parts did not all succeed runs again and resumes. Other calls that are done are not replaced.
_DELETE_RESUMED = """
WITH resumed (session_id, request_key) AS (VALUES {})
DELETE FROM journal WHERE state = 'done' AND child
AND (session_id, request_key) IN (SELECT session_id, request_key FROM resumed)
"""

_KNOWN = """
WITH asked (session_id, request_key) AS (VALUES {})
SELECT session_id, request_key FROM asked JOIN journal USING (session_id, request_key) WHERE NOT local
"""


def start(connection: sqlite3.Connection, calls: Sequence[CallStart]) -> list[bool]:
    """Writes that calls start. Returns whether each of them may start; False if its id is known, so nothing was
    written."""
    keys = [(call.session_id, call.request_key) for call in calls]
    replaced = [(key, call) for key, call in zip(keys, calls, strict=True) if call.replace]
    _execute(connection, _DELETE_REPLACED, [key for key, _ in replaced])
    _execute(connection, _DELETE_RESUMED, [key for key, call in replaced if call.orchestration])
    known = set(_execute(connection, _KNOWN, keys))
    new: list[bool] = []
    for key in keys:
        new.append(key not in known)
        known.add(key)
    starting = list(itertools.compress(calls, new))
    _execute(connection, _START, [_started(call) for call in starting])
    _execute(
        connection,
        _TEMPLATES,
        [(call.session_id, call.request_key, msgspec.json.encode(call.row).decode()) for call in starting],
    )
    run_sql.insert(connection, starting)
    detached_sql.insert(connection, starting)
    return new


def _started(call: CallStart) -> Values:
    row = call.row
    return (
        *(call.session_id, call.request_key, row.principal, row.tool, call.echo_id, call.arguments_hash),
        *(False, "started", row.started_at, call.child, call.child),
    )


def end(connection: sqlite3.Connection, calls: Iterable[CallEnd | InterruptedCall], *, max_bytes: int) -> None:
    """Writes the ends and results of calls; a result of more than ``max_bytes`` is not stored."""
    ends: list[Values] = []
    results: list[Values] = []
    for call in calls:
        result = call.result
        if result is not None and len(result) <= max_bytes:
            results.append((call.session_id, call.request_key, result))
            ends.append((call.session_id, call.request_key, "done", call.at, len(result)))
        else:
            state = "expired" if isinstance(call, CallEnd) else "interrupted"
            ends.append((call.session_id, call.request_key, state, call.at, 0))
    _execute(connection, _RESULTS, results)
    _execute(connection, _END, ends)


def end_unstarted(
    connection: sqlite3.Connection, calls: Sequence[tuple[CallEnd, UnstartedCall]], *, max_bytes: int
) -> list[bool]:
    """Writes the ends and results of calls whose tools did not start, even if their starts were not written. Returns
    whether each end was written; False if its id belongs to an earlier call, which stays unchanged.
    """
    ends: list[Values] = []
    results: dict[Values, bytes] = {}
    for call, content in calls:
        row, key = call.row, (call.session_id, call.request_key)
        if call.result is not None and len(call.result) <= max_bytes:
            results[key] = call.result
        ends.append(
            (
                *(*key, row.principal, row.tool, content.echo_id, content.arguments_hash, False),
                *("done" if key in results else "expired", row.started_at, call.at, len(results.get(key, b"")), True),
            )
        )
    written = set(_execute(connection, _END_UNSTARTED, ends))
    _execute(connection, _UNSTARTED_RESULTS, [(*key, result) for key, result in results.items() if key in written])
    return [(call.session_id, call.request_key) in written for call, _ in calls]


def persist_local_results(connection: sqlite3.Connection, calls: Iterable[StoredCall], *, max_bytes: int) -> None:
    """Writes results of local calls, of at most ``max_bytes`` each, if their session is stored."""
    rows: list[Values] = []
    results: list[Values] = []
    for call in calls:
        if call.result is not None and len(call.result) <= max_bytes:
            key = (call.session_id, call.request_key)
            rows.append((*key, call.tool, call.echo_id, call.arguments_hash, call.at, len(call.result)))
            results.append((*key, call.result))
    _execute(connection, _INSERT_LOCAL, rows)
    _execute(connection, _LOCAL_RESULTS, results)


def acknowledge(connection: sqlite3.Connection, session_id: str, request_keys: Iterable[str]) -> None:
    """Deletes results that their client has acknowledged; the ids of journalled calls stay known."""
    (numbers,) = connection.execute(
        "SELECT json_group_array(number) FROM journal WHERE session_id = ? "
        "AND request_key IN (SELECT value FROM json_each(?)) AND state IN ('done', 'interrupted')",
        (session_id, json.dumps(list(request_keys))),
    ).fetchone()
    _delete_results(connection, numbers)


def _delete_results(connection: sqlite3.Connection, numbers: str) -> int:
    """Deletes the results of calls by their numbers, as JSON; returns how many.

    A journalled call stays without its result; a local one is deleted.
    """
    local = connection.execute(
        "DELETE FROM journal WHERE local AND number IN (SELECT value FROM json_each(?))", (numbers,)
    )
    journalled = connection.execute(
        "UPDATE journal SET state = 'expired', result_bytes = 0 WHERE number IN (SELECT value FROM json_each(?))",
        (numbers,),
    )
    return local.rowcount + journalled.rowcount


# --- limits ----------------------------------------------------------------------------------------------------------


def enforce_results_limit(connection: sqlite3.Connection, max_bytes: int) -> None:
    """Deletes the oldest results of each principal whose results exceed ``max_bytes``. Results of unfinished runs do
    not count and are not deleted.
    """
    over = connection.execute("SELECT principal, bytes - ? FROM kept WHERE bytes > ?", (max_bytes, max_bytes))
    for principal, excess in over.fetchall():
        rows = connection.execute(
            "SELECT number, result_bytes FROM journal WHERE state = 'done' AND NOT unfinished AND principal = ? "
            "ORDER BY ended_at",
            (principal,),
        )
        _delete_results(connection, json.dumps(list(_oldest(rows, excess))))


def enforce_unfinished_limit(connection: sqlite3.Connection, max_bytes: int) -> None:
    """Deletes the oldest results of unfinished runs, for each principal whose results of unfinished runs exceed
    ``max_bytes``. Marks the detached calls that lose results.
    """
    over = connection.execute(
        "SELECT principal, unfinished_bytes - ? FROM kept WHERE unfinished_bytes > ?", (max_bytes, max_bytes)
    )
    for principal, excess in over.fetchall():
        rows = connection.execute(
            "SELECT number, result_bytes FROM journal WHERE unfinished AND principal = ? AND state = 'done' "
            "ORDER BY ended_at",
            (principal,),
        )
        numbers = json.dumps(list(_oldest(rows, excess)))
        run_sql.drop(connection, numbers)
        _delete_results(connection, numbers)


def _oldest(rows: Iterable[tuple[int, int]], excess: int) -> Iterator[int]:
    for number, size in rows:
        if excess <= 0:
            return
        excess -= size
        yield number


def delete_expired(connection: sqlite3.Connection, now: float, *, result_ttl_s: float) -> int:
    """Deletes results older than ``result_ttl_s``, and ids and sessions older than ``ID_TTL_S``: a slice of each.
    The children of runs that have not ended stay. ``now`` is a time of the store's clock.

    Returns the largest number of rows deleted of one kind; fewer than ``SLICE`` means that no more have to be deleted.
    """
    # All numbers in one row, because each row releases the interpreter lock (``ROWS_PER_STATEMENT``).
    (numbers,) = connection.execute(
        "SELECT json_group_array(number) FROM "
        "(SELECT number FROM journal WHERE state = 'done' AND ended_at < ? AND NOT unfinished LIMIT ?)",
        (now - result_ttl_s, SLICE),
    ).fetchone()
    results = _delete_results(connection, numbers)
    ids = connection.execute(
        "DELETE FROM journal WHERE number IN (SELECT number FROM journal "
        "WHERE state IN ('expired', 'interrupted') AND ended_at < ? AND NOT unfinished LIMIT ?)",
        (now - ID_TTL_S, SLICE),
    ).rowcount
    sessions = connection.execute(
        "DELETE FROM session WHERE rowid IN (SELECT rowid FROM session WHERE seen_at < ? "
        "AND NOT EXISTS (SELECT 1 FROM journal WHERE session_id = session.id) LIMIT ?)",
        (now - ID_TTL_S, SLICE),
    ).rowcount
    # Runs have Unix times, not times of the store's clock. With the earlier of the two, no run is deleted too soon.
    runs = run_sql.delete_expired(connection, min(now, time.time()) - ID_TTL_S)
    return max(results, ids, sessions, runs)


@functools.cache
def _many(statement: str, rows: int, columns: int) -> str:
    placeholders = f"({', '.join('?' * columns)})"
    return statement.format(", ".join([placeholders] * rows))


def _execute(connection: sqlite3.Connection, statement: str, rows: Sequence[Values]) -> list[Any]:
    """Runs a statement over rows in batches (see ``ROWS_PER_STATEMENT``); returns the resulting rows."""
    returned: list[Any] = []
    for first in range(0, len(rows), ROWS_PER_STATEMENT):
        batch = rows[first : first + ROWS_PER_STATEMENT]
        cursor = connection.execute(
            _many(statement, len(batch), len(batch[0])), tuple(itertools.chain.from_iterable(batch))
        )
        returned += cursor.fetchall()
    return returned
