"""The SQL of paused calls on PostgreSQL: detached calls that wait for decisions of a person, and their requests.

Functions that write run within the caller's transaction and pipeline, and fetch nothing. Times are times of the store's
clock, except where they are Unix times. No node runs a paused call: the node that continues it adopts it first.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import psycopg

from ...protocol.input_request import InputDecision, InputRequest
from ..store_rows import CallPause, InputDecided, StoredRequest, decision_hash
from .pg_values import arrays, pg_text, text_of

Connection = psycopg.Connection[tuple[Any, ...]]

LISTED: Final = 100
"""The maximum number of paused calls in a list: each may have 256 KiB of requests."""
_CREDENTIAL_REQUEST: Final = b'"kind":"credential"'
"""A part of the JSON of each request for a credential, and rarely of other requests."""

_PAUSE: Final = """
WITH paused AS (
    UPDATE detached SET expires_at = least(%(expires_at)s, coalesce(drops_at, %(drops_at)s)),
                        drops_at = coalesce(drops_at, %(drops_at)s), remaining_s = %(remaining_s)s
    WHERE call_id = %(call_id)s RETURNING number
)
UPDATE journal SET node = NULL FROM paused WHERE journal.number = paused.number
"""
_REQUESTS: Final = """
INSERT INTO input_request (number, id, call_id, position, request)
SELECT number, new.id, call_id, new.position + (SELECT count(*) FROM input_request WHERE call_id = %s), new.request
FROM detached, unnest(%s::text[], %s::int[], %s::bytea[]) AS new (id, position, request)
WHERE call_id = %s ON CONFLICT DO NOTHING
"""
# After the last decision, the call is no longer paused.
_DECIDE: Final = (
    """UPDATE input_request SET decision = %(decision)s, decision_hash = %(hash)s
       WHERE call_id = %(call_id)s AND id = %(request_id)s AND decision_hash IS NULL""",
    """UPDATE detached SET expires_at = NULL, deadline_at = %(at)s + remaining_s
       WHERE call_id = %(call_id)s AND expires_at IS NOT NULL AND NOT EXISTS
           (SELECT 1 FROM input_request WHERE number = detached.number AND decision_hash IS NULL)""",
)


def pause(connection: Connection, entry: CallPause) -> None:
    """Pauses a detached call. Its existing requests stay unchanged."""
    call_id = pg_text(entry.call_id)
    connection.execute(
        _PAUSE,
        {
            "call_id": call_id,
            "expires_at": entry.expires_at,
            "drops_at": entry.drops_at,
            "remaining_s": entry.remaining_s,
        },
    )
    rows = [
        (pg_text(request.id), position, msgspec.json.encode(request)) for position, request in enumerate(entry.requests)
    ]
    if rows:
        connection.execute(_REQUESTS, (call_id, *arrays(rows), call_id))


def decide(connection: Connection, entry: InputDecided) -> None:
    """Stores a decision on an open request."""
    values = {
        "decision": msgspec.json.encode(entry.decision),
        "hash": decision_hash(entry.decision),
        "call_id": pg_text(entry.call_id),
        "request_id": pg_text(entry.request_id),
        "at": entry.at,
    }
    # If two nodes decide the last two requests at the same time, the second one sees the decision of the first.
    connection.execute("SELECT 1 FROM detached WHERE call_id = %(call_id)s FOR UPDATE", values)
    for statement in _DECIDE:
        connection.execute(statement, values)


def requests_of(connection: Connection, call_id: str) -> tuple[StoredRequest, ...]:
    """Returns the requests of a call that has not ended, in their order. ``call_id`` as stored."""
    rows = connection.execute(
        "SELECT request, decision FROM input_request WHERE call_id = %s AND request IS NOT NULL ORDER BY position",
        (call_id,),
    )
    return tuple(
        StoredRequest(
            msgspec.json.decode(request, type=InputRequest),
            None if decision is None else msgspec.json.decode(decision, type=InputDecision),
        )
        for request, decision in rows.fetchall()
    )


def decision_hashes(connection: Connection, call_id: str, principal: str) -> dict[str, bytes]:
    """Returns the decisions of a principal's call, even after its end: the id of each request and the hash of its
    decision.
    """
    rows = connection.execute(
        "SELECT input_request.id, decision_hash FROM input_request JOIN journal USING (number) "
        "WHERE call_id = %s AND principal = %s AND decision_hash IS NOT NULL",
        (pg_text(call_id), pg_text(principal)),
    )
    return {text_of(request_id): bytes(hashed) for request_id, hashed in rows}


def paused_ids(connection: Connection, principal: str | None) -> list[str]:
    """Returns the ids, as stored, of the oldest ``LISTED`` paused calls of a principal, or of all principals."""
    rows = connection.execute(
        "SELECT call_id FROM detached JOIN journal USING (number) WHERE expires_at IS NOT NULL "
        "AND principal = coalesce(%s, principal) ORDER BY number LIMIT %s",
        (None if principal is None else pg_text(principal), LISTED),
    )
    return [call_id for (call_id,) in rows]


def waiting_for_credentials(connection: Connection, after: int) -> Sequence[tuple[int, str]]:
    """Returns the next ``LISTED`` paused calls after a number that may wait for a credential: number and stored id."""
    return connection.execute(
        "SELECT number, call_id FROM detached WHERE expires_at IS NOT NULL AND number > %s AND EXISTS "
        "(SELECT 1 FROM input_request WHERE number = detached.number AND decision_hash IS NULL "
        "AND position(%s::bytea IN request) > 0) ORDER BY number LIMIT %s",
        (after, _CREDENTIAL_REQUEST, LISTED),
    ).fetchall()


def paused_count(connection: Connection, principal: str) -> int:
    """Returns the number of a principal's paused calls."""
    row = connection.execute(
        "SELECT count(*) FROM detached JOIN journal USING (number) WHERE expires_at IS NOT NULL AND principal = %s",
        (pg_text(principal),),
    ).fetchone()
    return 0 if row is None else int(row[0])


def paused_on(connection: Connection, run: str) -> str | None:
    """Returns the id of the paused call that continues this run; None if there is none."""
    row = connection.execute(
        "SELECT call_id FROM detached LEFT JOIN run USING (call_id) "
        "WHERE expires_at IS NOT NULL AND coalesce(run.run, call_id) = %s",
        (pg_text(run),),
    ).fetchone()
    return None if row is None else text_of(row[0])


def due_ids(connection: Connection, now: float) -> list[str]:
    """Returns the ids, as stored, of the paused calls whose requests have expired, or whose run has been dropped."""
    rows = connection.execute(
        "SELECT call_id FROM detached WHERE expires_at IS NOT NULL AND (expires_at <= %s OR dropped) "
        "ORDER BY expires_at",
        (now,),
    )
    return [call_id for (call_id,) in rows]


def next_expiry(connection: Connection) -> float | None:
    """Returns when the next requests expire; None if no call is paused."""
    row = connection.execute("SELECT min(expires_at) FROM detached WHERE expires_at IS NOT NULL").fetchone()
    return None if row is None or row[0] is None else float(row[0])
