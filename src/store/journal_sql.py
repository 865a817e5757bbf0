"""The SQL of the journal: calls from before they start until they are forgotten; ``sessions`` reads what is known.

Each function is one short piece of work within a transaction of the caller's.
"""

import functools
import itertools
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from . import detached_sql, run_sql
from .audit_sql import ROWS_PER_STATEMENT, SLICE, Values
from .store_rows import CallEnd, CallRow, CallStart, StoredCall

REMEMBERED_S: Final = 7 * 86400.0
"""How long an id is known after its call ended, and a session after it was last seen: docs/protocol.md, 'The same id
again'."""


class InterruptedCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A call that had started when the process before this one ended."""

    session_id: str
    request_key: str
    at: float
    """When it was found, in Unix seconds."""
    row: CallRow | None
    """Its audit row, as ``CallStart`` had it; None where that cannot be read any more."""


# --- calls -----------------------------------------------------------------------------------------------------------

# A local answer that is stored under this id makes way: its call may run again, as another one too.
_START = """
INSERT INTO journal (session_id, request_key, principal, tool, echo_id, arguments_hash, local, state, started_at, child)
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

# Only what has started ends: an id that was refused as known keeps what it is known for.
_END = """
WITH ended (session_id, request_key, state, at, result_bytes) AS (VALUES {})
UPDATE journal SET state = ended.state, ended_at = ended.at, result_bytes = ended.result_bytes
FROM ended
WHERE journal.session_id = ended.session_id AND journal.request_key = ended.request_key AND journal.state = 'started'
"""

# Before they end: they are told from what has ended by that.
_RESULTS = """
WITH ended (session_id, request_key, result) AS (VALUES {})
INSERT INTO result (number, result)
SELECT journal.number, ended.result FROM ended CROSS JOIN journal USING (session_id, request_key)
WHERE journal.state = 'started'
"""

_KEEP = """
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

_KEPT_RESULTS = """
WITH answer (session_id, request_key, result) AS (VALUES {})
INSERT OR REPLACE INTO result (number, result)
SELECT journal.number, answer.result FROM answer CROSS JOIN journal USING (session_id, request_key)
WHERE journal.local
"""

_MAKE_WAY = """
WITH again (session_id, request_key) AS (VALUES {})
DELETE FROM journal WHERE state IN ('interrupted', 'expired') AND child
AND (session_id, request_key) IN (SELECT session_id, request_key FROM again)
"""

_KNOWN = """
WITH asked (session_id, request_key) AS (VALUES {})
SELECT session_id, request_key FROM asked JOIN journal USING (session_id, request_key) WHERE NOT local
"""


def start(connection: sqlite3.Connection, calls: Sequence[CallStart]) -> list[bool]:
    """Write down that calls start. For each whether it may: False where its id is known, and nothing is written."""
    keys = [(call.session_id, call.request_key) for call in calls]
    _execute(connection, _MAKE_WAY, [key for key, call in zip(keys, calls, strict=True) if call.again])
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
    run_sql.begin(connection, starting)
    detached_sql.begin(connection, starting)
    return new


def _started(call: CallStart) -> Values:
    row = call.row
    return (
        *(call.session_id, call.request_key, row.principal, row.tool, call.echo_id, call.arguments_hash),
        *(False, "started", row.started_at, call.child),
    )


def end(connection: sqlite3.Connection, calls: Iterable[CallEnd | InterruptedCall], *, max_bytes: int) -> None:
    """Write down how calls ended, with their results; one of more than ``max_bytes`` is not kept."""
    ends: list[Values] = []
    results: list[Values] = []
    for call in calls:
        result = call.result if isinstance(call, CallEnd) else None
        if result is not None and len(result) <= max_bytes:
            results.append((call.session_id, call.request_key, result))
            ends.append((call.session_id, call.request_key, "done", call.at, len(result)))
        else:
            state = "expired" if isinstance(call, CallEnd) else "interrupted"
            ends.append((call.session_id, call.request_key, state, call.at, 0))
    _execute(connection, _RESULTS, results)
    _execute(connection, _END, ends)


def keep(connection: sqlite3.Connection, calls: Iterable[StoredCall], *, max_bytes: int) -> None:
    """Store answers of local calls, each of at most ``max_bytes``; only for sessions that can be come back to."""
    rows: list[Values] = []
    results: list[Values] = []
    for call in calls:
        if call.result is not None and len(call.result) <= max_bytes:
            key = (call.session_id, call.request_key)
            rows.append((*key, call.tool, call.echo_id, call.arguments_hash, call.at, len(call.result)))
            results.append((*key, call.result))
    _execute(connection, _KEEP, rows)
    _execute(connection, _KEPT_RESULTS, results)


def started(connection: sqlite3.Connection, at: float) -> list[InterruptedCall]:
    """The calls that are written down as started, as interrupted ones, but for those that go on; for the start of a
    daemon.
    """
    found = connection.execute(
        # As bytes, for what is no text either is to be found out row by row.
        "SELECT session_id, request_key, CAST(audit_row AS BLOB) FROM journal LEFT JOIN template USING (number) "
        "WHERE state = 'started' AND number NOT IN (SELECT number FROM detached) ORDER BY number"
    )
    return [
        InterruptedCall(session_id=session_id, request_key=key, at=at, row=_template(template))
        for session_id, key, template in found
    ]


def _template(json_: bytes | None) -> CallRow | None:
    try:
        return msgspec.json.decode(json_ or b"", type=CallRow)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def forget(connection: sqlite3.Connection, session_id: str, keys: Iterable[str]) -> None:
    """Drop answers that their client has; the ids of journalled calls stay known."""
    (numbers,) = connection.execute(
        "SELECT json_group_array(number) FROM journal WHERE session_id = ? "
        "AND request_key IN (SELECT value FROM json_each(?)) AND state IN ('done', 'interrupted')",
        (session_id, json.dumps(list(keys))),
    ).fetchone()
    _drop(connection, numbers)


def _drop(connection: sqlite3.Connection, numbers: str) -> int:
    """Drop answers by their numbers, as JSON; returns how many.

    A journalled call is remembered without its answer, a local one is not remembered.
    """
    local = connection.execute(
        "DELETE FROM journal WHERE local AND number IN (SELECT value FROM json_each(?))", (numbers,)
    )
    journalled = connection.execute(
        "UPDATE journal SET state = 'expired', result_bytes = 0 WHERE number IN (SELECT value FROM json_each(?))",
        (numbers,),
    )
    return local.rowcount + journalled.rowcount


# --- bounds ----------------------------------------------------------------------------------------------------------


def keep_bound(connection: sqlite3.Connection, max_bytes: int) -> None:
    """Drop the oldest results of each principal whose results come to more than ``max_bytes``."""
    over = connection.execute("SELECT principal, bytes - ? FROM kept WHERE bytes > ?", (max_bytes, max_bytes))
    for principal, excess in over.fetchall():
        _drop(connection, json.dumps(list(_oldest(connection, principal, excess))))


def _oldest(connection: sqlite3.Connection, principal: str, excess: int) -> Iterator[int]:
    found = connection.execute(
        "SELECT number, result_bytes FROM journal WHERE state = 'done' AND principal = ? ORDER BY ended_at",
        (principal,),
    )
    for number, size in found:
        if excess <= 0:
            return
        excess -= size
        yield number


def forget_old(connection: sqlite3.Connection, now: float, *, result_ttl_s: float) -> int:
    """Drop results older than ``result_ttl_s``, then ids and sessions older than ``REMEMBERED_S``: a slice of each.

    Returns the most that was removed of one of them; fewer than ``SLICE`` means that no more is too old.
    """
    # One row of many numbers: with each row the interpreter lock is given away (``calls.ROWS_PER_STATEMENT``).
    (numbers,) = connection.execute(
        "SELECT json_group_array(number) FROM "
        "(SELECT number FROM journal WHERE state = 'done' AND ended_at < ? LIMIT ?)",
        (now - result_ttl_s, SLICE),
    ).fetchone()
    results = _drop(connection, numbers)
    ids = connection.execute(
        "DELETE FROM journal WHERE number IN (SELECT number FROM journal "
        "WHERE state IN ('expired', 'interrupted') AND ended_at < ? LIMIT ?)",
        (now - REMEMBERED_S, SLICE),
    ).rowcount
    sessions = connection.execute(
        "DELETE FROM session WHERE rowid IN (SELECT rowid FROM session WHERE seen_at < ? "
        "AND NOT EXISTS (SELECT 1 FROM journal WHERE session_id = session.id) LIMIT ?)",
        (now - REMEMBERED_S, SLICE),
    ).rowcount
    return max(results, ids, sessions, run_sql.forget_old(connection, now - REMEMBERED_S))


@functools.cache
def _many(statement: str, rows: int, columns: int) -> str:
    one = f"({', '.join('?' * columns)})"
    return statement.format(", ".join([one] * rows))


def _execute(connection: sqlite3.Connection, statement: str, rows: Sequence[Values]) -> list[Any]:
    """Run a statement over rows by the hundred (``calls.ROWS_PER_STATEMENT`` says why); returns what it returns."""
    found: list[Any] = []
    for first in range(0, len(rows), ROWS_PER_STATEMENT):
        some = rows[first : first + ROWS_PER_STATEMENT]
        cursor = connection.execute(
            _many(statement, len(some), len(some[0])), tuple(itertools.chain.from_iterable(some))
        )
        found += cursor.fetchall()
    return found
