"""The SQL of audit rows: insert, read, sum, delete. Each function takes a few milliseconds."""

import datetime as dt
import functools
import itertools
import sqlite3
from collections.abc import Sequence
from typing import Final

from ..audit_rows import COLUMNS, Values, audit_row
from ..call_totals import summed
from ..chain_extension import ChainExtension
from ..store_limits import ROWS_PER_STATEMENT, SEARCHED_ROWS
from ..store_rows import CallRow, CallTotals
from . import chain_checkpoints

SLICE: Final = 500
"""Rows that one step of retention deletes: a few milliseconds of work, so that the queue does not wait long."""


@functools.cache
def _insert(rows: int) -> str:
    placeholders = f"({', '.join('?' * (2 + len(COLUMNS)))})"
    return f"INSERT INTO call (seq, {', '.join(COLUMNS)}, mac) VALUES {', '.join([placeholders] * rows)}"  # noqa: S608 - our own names


_ADD_TO_TOTALS = """
INSERT INTO call_total (principal, tool, outcome, provider, model, simulated, currency,
                        calls, input_tokens, output_tokens, cost, since, until)
SELECT principal, CASE outcome WHEN 'TOOL_NOT_FOUND' THEN '' ELSE tool END, outcome,
       coalesce(provider, ''), coalesce(model, ''), simulated, coalesce(cost_currency, ''),
       count(*), sum(input_tokens), sum(output_tokens), total(cost_amount), min(started_at), max(started_at)
FROM call WHERE seq > ? GROUP BY 1, 2, 3, 4, 5, 6, 7
"""
_ADDED = """
ON CONFLICT DO UPDATE SET
    calls = calls + excluded.calls,
    input_tokens = input_tokens + excluded.input_tokens,
    output_tokens = output_tokens + excluded.output_tokens,
    cost = cost + excluded.cost,
    since = min(since, excluded.since),
    until = max(until, excluded.until)
"""
_MERGE_TOTALS = """
INSERT INTO call_total
SELECT '', tool, outcome, provider, model, simulated, currency,
       sum(calls), sum(input_tokens), sum(output_tokens), sum(cost), min(since), max(until)
FROM call_total WHERE principal = ? GROUP BY 1, 2, 3, 4, 5, 6, 7
"""


def add(connection: sqlite3.Connection, chain: ChainExtension, rows: Sequence[Values]) -> None:
    """Inserts rows and updates the sums, within the caller's transaction.

    Raises:
        sqlite3.Error, TypeError, ValueError, OverflowError: the caller must roll back the transaction.
    """
    last = chain.head.last_seq
    numbered = chain.number_rows(rows)
    for start in range(0, len(numbered), ROWS_PER_STATEMENT):
        batch = numbered[start : start + ROWS_PER_STATEMENT]
        connection.execute(_insert(len(batch)), tuple(itertools.chain.from_iterable(batch)))
    connection.execute(_ADD_TO_TOTALS + _ADDED, (last,))


def delete_expired(
    connection: sqlite3.Connection, chain: ChainExtension, *, before: float, now: float, max_bytes: int
) -> int:
    """Deletes the oldest rows, at most ``SLICE``: calls that started before a Unix time, and as many as needed for the
    rest to fit in ``max_bytes``. Only the beginning of the chain is removed: an old row stays while a newer one
    precedes it.

    Returns the number of deleted rows; fewer than ``SLICE`` means that no more rows have to be deleted.
    """
    oldest = connection.execute(
        "SELECT seq, started_at, bytes FROM call JOIN call_size USING (seq) ORDER BY seq LIMIT ?", (SLICE,)
    )
    # Rows from the future, written with a wrong clock, are treated as old as the rows after them.
    # The + makes SQLite scan from the first row, which mostly matches; with the index it would sort all rows.
    first = connection.execute(
        "SELECT started_at FROM call WHERE +started_at <= ? ORDER BY seq LIMIT 1", (now,)
    ).fetchone()
    begins_old = first is not None and first[0] < before
    excess = stored_bytes(connection) - max_bytes
    seqs: list[int] = []
    for seq, started_at, size in oldest:
        old = begins_old and (started_at < before or started_at > now)
        if not old and excess <= 0:
            break
        excess -= size
        seqs.append(seq)
    if seqs:
        chain.add_expired(seqs, chain_checkpoints.settled_seq(connection))
        connection.execute("DELETE FROM call WHERE seq <= ?", (seqs[-1],))
        connection.execute("DELETE FROM refused WHERE seq <= ?", (seqs[-1],))
    return len(seqs)


def stored_bytes(connection: sqlite3.Connection) -> int:
    """Returns the approximate size of all rows in the file."""
    (total,) = connection.execute("SELECT bytes FROM calls_size").fetchone()
    return int(total)


def recent(connection: sqlite3.Connection, limit: int) -> list[CallRow]:
    """Returns the calls that ended last, newest first."""
    rows = connection.execute(
        f"SELECT {', '.join(COLUMNS)} FROM call ORDER BY seq DESC LIMIT ?",  # noqa: S608 - our own names
        (limit,),
    )
    return [audit_row(fields) for fields in rows]


_ENDED = f"""
SELECT {", ".join(COLUMNS)} FROM call
WHERE seq > coalesce((SELECT max(seq) FROM call), 0) - {SEARCHED_ROWS} AND principal = ?1
  AND (?2 IS NULL OR tool = ?2)
  AND (?3 IS NULL OR outcome = ?3 OR (?3 = 'error' AND outcome != 'ok'))
ORDER BY seq DESC LIMIT ?4
"""  # noqa: S608 - our own names


def ended_calls(
    connection: sqlite3.Connection, principal: str, limit: int, tool: str | None, outcome: str | None
) -> list[CallRow]:
    """Returns a principal's calls that ended last, newest first, optionally by tool and outcome."""
    return [audit_row(fields) for fields in connection.execute(_ENDED, (principal, tool, outcome, limit))]


_FIND = f"""
SELECT {", ".join(COLUMNS)} FROM call
WHERE seq > coalesce((SELECT max(seq) FROM call), 0) - {SEARCHED_ROWS} AND id = ? AND principal = ?
ORDER BY seq DESC LIMIT 1
"""  # noqa: S608 - our own names


def find_call(connection: sqlite3.Connection, call_id: str, principal: str) -> CallRow | None:
    """Returns a principal's call by its id, if it is among the newest ``SEARCHED_ROWS``."""
    columns = connection.execute(_FIND, (call_id, principal)).fetchone()
    return None if columns is None else audit_row(columns)


_SUMS = """
SELECT tool, outcome, provider, model, simulated, currency,
       sum(calls), sum(input_tokens), sum(output_tokens), sum(cost), min(since)
FROM call_total {} GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY tool, provider, model
"""


def totals(connection: sqlite3.Connection, principal: str | None = None) -> CallTotals:
    """Returns the sums over all calls ever recorded, or over those of one principal."""
    condition, names = ("", ()) if principal is None else ("WHERE principal = ?", (principal,))
    return summed(connection.execute(_SUMS.format(condition), names))


def merge_old_totals(connection: sqlite3.Connection, before: float) -> None:
    """Merges the sums of principals without a call since a Unix time into one group, to bound the number of rows."""
    old = connection.execute(
        "SELECT principal FROM call_total WHERE principal != '' GROUP BY principal HAVING max(until) < ? LIMIT ?",
        (before, SLICE),
    ).fetchall()
    for principal in old:
        connection.execute(_MERGE_TOTALS + _ADDED, principal)
        connection.execute("DELETE FROM call_total WHERE principal = ?", principal)


def calls_of_day(connection: sqlite3.Connection, day: str) -> dict[tuple[str, str], int]:
    """Returns how many calls began on a day (UTC), by principal and tool. Failures without an effect do not count."""
    begin = dt.datetime.fromisoformat(day).replace(tzinfo=dt.UTC).timestamp()
    rows = connection.execute(
        "SELECT principal, tool, count(*) FROM call WHERE started_at >= ? AND started_at < ? "
        "AND (outcome = 'ok' OR executed <> 'no') GROUP BY principal, tool",
        (begin, begin + 86400),
    )
    return {(principal, tool): number for principal, tool, number in rows}
