"""The SQL of paused calls: detached calls that wait for decisions of a person, and their requests.

Each function takes a few milliseconds and runs within the caller's transaction. Times are times of the store's clock,
except where they are Unix times.
"""

import sqlite3
from typing import Final

import msgspec

from ...protocol.input_request import InputDecision, InputRequest
from ..store_rows import CallPause, InputDecided, StoredRequest, decision_hash

LISTED: Final = 100
"""The maximum number of paused calls in a list: each may have 256 KiB of requests."""
_CREDENTIAL_REQUEST: Final = '"kind":"credential"'
"""A part of the JSON of each request for a credential, and rarely of other requests."""


def pause(connection: sqlite3.Connection, entry: CallPause) -> None:
    """Pauses a detached call. Its existing requests stay unchanged."""
    connection.execute(
        "UPDATE detached SET expires_at = min(?, coalesce(drops_at, ?)), drops_at = coalesce(drops_at, ?), "
        "remaining_s = ? WHERE call_id = ?",
        (entry.expires_at, entry.drops_at, entry.drops_at, entry.remaining_s, entry.call_id),
    )
    (first,) = connection.execute("SELECT count(*) FROM input_request WHERE call_id = ?", (entry.call_id,)).fetchone()
    connection.executemany(
        "INSERT INTO input_request (number, id, call_id, position, request) "
        "SELECT number, ?, call_id, ?, ? FROM detached WHERE call_id = ? ON CONFLICT DO NOTHING",
        [
            (request.id, position, msgspec.json.encode(request), entry.call_id)
            for position, request in enumerate(entry.requests, first)
        ],
    )


def decide(connection: sqlite3.Connection, entry: InputDecided) -> None:
    """Stores a decision on an open request. After the last one, the call is no longer paused."""
    connection.execute(
        "UPDATE input_request SET decision = ?, decision_hash = ? "
        "WHERE call_id = ? AND id = ? AND decision_hash IS NULL",
        (msgspec.json.encode(entry.decision), decision_hash(entry.decision), entry.call_id, entry.request_id),
    )
    connection.execute(
        "UPDATE detached SET expires_at = NULL, deadline_at = ? + remaining_s WHERE call_id = ? AND NOT EXISTS "
        "(SELECT 1 FROM input_request WHERE number = detached.number AND decision_hash IS NULL)",
        (entry.at, entry.call_id),
    )


def requests_of(connection: sqlite3.Connection, call_id: str) -> tuple[StoredRequest, ...]:
    """Returns the requests of a call that has not ended, in their order."""
    rows = connection.execute(
        "SELECT request, decision FROM input_request WHERE call_id = ? AND request IS NOT NULL ORDER BY position",
        (call_id,),
    )
    return tuple(
        StoredRequest(
            msgspec.json.decode(request, type=InputRequest),
            None if decision is None else msgspec.json.decode(decision, type=InputDecision),
        )
        for request, decision in rows
    )


def decision_hashes(connection: sqlite3.Connection, call_id: str, principal: str) -> dict[str, bytes]:
    """Returns the decisions of a principal's call, even if it has ended: the id and the hash of each request."""
    rows = connection.execute(
        "SELECT input_request.id, decision_hash FROM input_request JOIN journal USING (number) "
        "WHERE call_id = ? AND principal = ? AND decision_hash IS NOT NULL",
        (call_id, principal),
    )
    return dict(rows.fetchall())


def paused_ids(connection: sqlite3.Connection, principal: str | None) -> list[str]:
    """Returns the ids of the oldest ``LISTED`` paused calls of a principal, or of all principals."""
    rows = connection.execute(
        "SELECT call_id FROM detached JOIN journal USING (number) "
        "WHERE expires_at IS NOT NULL AND principal = coalesce(?, principal) ORDER BY number LIMIT ?",
        (principal, LISTED),
    )
    return [call_id for (call_id,) in rows]


def waiting_for_credentials(connection: sqlite3.Connection, after: int) -> list[tuple[int, str]]:
    """Returns the next ``LISTED`` paused calls after this number that may wait for a credential: number and id."""
    rows = connection.execute(
        "SELECT number, call_id FROM detached WHERE expires_at IS NOT NULL AND number > ? AND EXISTS "
        "(SELECT 1 FROM input_request WHERE number = detached.number AND decision_hash IS NULL "
        "AND instr(request, CAST(? AS BLOB))) ORDER BY number LIMIT ?",
        (after, _CREDENTIAL_REQUEST, LISTED),
    )
    return rows.fetchall()


def paused_count(connection: sqlite3.Connection, principal: str) -> int:
    """Returns the number of a principal's paused calls."""
    (count,) = connection.execute(
        "SELECT count(*) FROM detached JOIN journal USING (number) WHERE expires_at IS NOT NULL AND principal = ?",
        (principal,),
    ).fetchone()
    return int(count)


def paused_on(connection: sqlite3.Connection, run: str) -> str | None:
    """Returns the id of the paused call that continues this run; None if there is none."""
    row = connection.execute(
        "SELECT call_id FROM detached LEFT JOIN run USING (call_id) "
        "WHERE expires_at IS NOT NULL AND coalesce(run.run, call_id) = ?",
        (run,),
    ).fetchone()
    return None if row is None else str(row[0])


def due_ids(connection: sqlite3.Connection, now: float) -> list[str]:
    """Returns the ids of the paused calls whose requests have expired, or whose run has been dropped."""
    rows = connection.execute(
        "SELECT call_id FROM detached WHERE expires_at IS NOT NULL AND (expires_at <= ? OR dropped) "
        "ORDER BY expires_at",
        (now,),
    )
    return [call_id for (call_id,) in rows]


def next_expiry(connection: sqlite3.Connection) -> float | None:
    """Returns when the next requests expire; None if no call is paused."""
    (at,) = connection.execute("SELECT min(expires_at) FROM detached WHERE expires_at IS NOT NULL").fetchone()
    return None if at is None else float(at)
