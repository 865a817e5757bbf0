"""The SQL of audit rows on PostgreSQL: insert, read, sum, delete. Each function takes a few milliseconds."""

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any, Final

import psycopg

from ..audit_rows import COLUMNS, Values, audit_row
from ..call_totals import summed
from ..chain_extension import ChainExtension
from ..store_limits import SEARCHED_ROWS
from ..store_rows import CallRow, CallTotals
from . import pg_chain_sql
from .pg_values import arrays, pg_text, text_of

Connection = psycopg.Connection[tuple[Any, ...]]

SLICE: Final = 500
"""Rows that one step of retention deletes: a few milliseconds of work."""

_TYPES: Final = {
    **dict.fromkeys(("started_at", "latency_ms", "queue_ms", "tool_ms", "provider_ms", "cost_amount"), "float8"),
    **dict.fromkeys(("arguments_bytes", "result_bytes", "input_tokens", "output_tokens"), "int8"),
    "simulated": "bool",
}
"""The columns of audit rows that are not text."""
_INSERT: Final = f"""
INSERT INTO call (chain, seq, {", ".join(COLUMNS)}, mac)
SELECT %s, * FROM unnest(%s::int8[], {", ".join(f"%s::{_TYPES.get(name, 'text')}[]" for name in COLUMNS)}, %s::bytea[])
"""

_ADD_TO_TOTALS: Final = """
INSERT INTO call_total (chain, principal, tool, outcome, provider, model, simulated, currency,
                        calls, input_tokens, output_tokens, cost, since, until)
SELECT chain, principal, CASE outcome WHEN 'TOOL_NOT_FOUND' THEN '' ELSE tool END, outcome,
       coalesce(provider, ''), coalesce(model, ''), simulated, coalesce(cost_currency, ''),
       count(*), sum(input_tokens), sum(output_tokens), coalesce(sum(cost_amount), 0), min(started_at), max(started_at)
FROM call WHERE chain = %s AND seq > %s GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
"""
_ADDED: Final = """
ON CONFLICT (chain, principal, tool, outcome, provider, model, simulated, currency) DO UPDATE SET
    calls = call_total.calls + excluded.calls,
    input_tokens = call_total.input_tokens + excluded.input_tokens,
    output_tokens = call_total.output_tokens + excluded.output_tokens,
    cost = call_total.cost + excluded.cost,
    since = least(call_total.since, excluded.since),
    until = greatest(call_total.until, excluded.until)
"""
_MERGE_TOTALS: Final = """
INSERT INTO call_total
SELECT chain, '', tool, outcome, provider, model, simulated, currency,
       sum(calls), sum(input_tokens), sum(output_tokens), sum(cost), min(since), max(until)
FROM call_total WHERE chain = %s AND principal = ANY(%s)
GROUP BY chain, tool, outcome, provider, model, simulated, currency
"""


def add(connection: Connection, chain: ChainExtension, rows: Sequence[Values]) -> None:
    """Inserts rows and updates the sums, within the caller's transaction. Reads nothing, so it suits a pipeline.

    Raises:
        psycopg.Error, TypeError, ValueError, OverflowError: roll the transaction back.
    """
    number, last = pg_chain_sql.number_of(chain), chain.head.last_seq
    numbered = chain.number_rows(rows)
    stored = [[pg_text(value) if isinstance(value, str) else value for value in row] for row in numbered]
    connection.execute(_INSERT, (number, *arrays(stored)))
    connection.execute(_ADD_TO_TOTALS + _ADDED, (number, last))
    connection.execute(
        "UPDATE chain SET stored = stored + (SELECT coalesce(sum(bytes), 0) FROM call WHERE chain = %s AND seq > %s) "
        "WHERE number = %s",
        (number, last, number),
    )


def stored_row(columns: Iterable[Any]) -> CallRow:
    """Returns the row of stored column values in the order of ``COLUMNS``."""
    return audit_row(stored_values(columns))


def stored_values(columns: Iterable[Any]) -> Values:
    """Returns the column values of a row, as they were given to ``add``."""
    return tuple(text_of(value) if isinstance(value, str) else value for value in columns)


def excess_of(connection: Connection, chain: int, excess: int) -> int:
    """Selects the oldest rows of all chains, up to ``excess`` bytes or ``2 * SLICE`` rows, and returns how many of
    these bytes belong to a chain.
    """
    if excess <= 0:
        return 0
    own = 0
    for owner, size in connection.execute("SELECT chain, bytes FROM call ORDER BY number LIMIT %s", (2 * SLICE,)):
        own += size if owner == chain else 0
        excess -= size
        if excess <= 0:
            break
    return own


def delete_expired(connection: Connection, chain: ChainExtension, *, before: float, now: float, excess: int) -> int:
    """Deletes the oldest rows of a chain, at most ``SLICE``: calls that started before a Unix time, and further rows up
    to ``excess`` bytes. Only the beginning of the chain is removed, so an old row stays while a newer one precedes it.

    Returns the number of deleted rows; fewer than ``SLICE`` means that no further row has to be deleted.
    """
    number = pg_chain_sql.number_of(chain)
    oldest = connection.execute(
        "SELECT seq, started_at, bytes FROM call WHERE chain = %s ORDER BY seq LIMIT %s", (number, SLICE)
    ).fetchall()
    # Rows from the future, written with a wrong clock, count as old as the rows after them.
    first = next((started_at for _, started_at, _ in oldest if started_at <= now), None)
    if first is None and oldest:
        found = connection.execute(
            "SELECT started_at FROM call WHERE chain = %s AND started_at <= %s ORDER BY seq LIMIT 1", (number, now)
        ).fetchone()
        first = found[0] if found else None
    begins_old = first is not None and first < before
    seqs: list[int] = []
    freed = 0
    for seq, started_at, size in oldest:
        old = begins_old and (started_at < before or started_at > now)
        if not old and excess <= 0:
            break
        excess -= size
        freed += size
        seqs.append(seq)
    if seqs:
        chain.add_expired(seqs, pg_chain_sql.settled_seq(connection, number))
        connection.execute("DELETE FROM call WHERE chain = %s AND seq <= %s", (number, seqs[-1]))
        connection.execute("DELETE FROM refused WHERE chain = %s AND seq <= %s", (number, seqs[-1]))
        connection.execute("UPDATE chain SET stored = stored - %s WHERE number = %s", (freed, number))
    return len(seqs)


def stored_bytes(connection: Connection) -> int:
    """Returns the approximate size of all rows."""
    (total,) = connection.execute("SELECT coalesce(sum(stored), 0) FROM chain").fetchone() or (0,)
    return int(total)


def recent(connection: Connection, limit: int) -> list[CallRow]:
    """Returns the calls that ended last, newest first."""
    rows = connection.execute(
        f"SELECT {', '.join(COLUMNS)} FROM call ORDER BY number DESC LIMIT %s",
        (limit,),
    )
    return [stored_row(fields) for fields in rows]


_ENDED: Final = f"""
SELECT {", ".join(COLUMNS)} FROM call
WHERE number > coalesce((SELECT max(number) FROM call), 0) - {SEARCHED_ROWS} AND principal = %(principal)s
  AND (%(tool)s::text IS NULL OR tool = %(tool)s)
  AND (%(outcome)s::text IS NULL OR outcome = %(outcome)s OR (%(outcome)s = 'error' AND outcome <> 'ok'))
ORDER BY number DESC LIMIT %(limit)s
"""


def ended_calls(
    connection: Connection, principal: str, limit: int, tool: str | None, outcome: str | None
) -> list[CallRow]:
    """Returns a principal's calls that ended last, newest first, optionally by tool and outcome."""
    values = {"principal": pg_text(principal), "tool": _optional(tool), "outcome": _optional(outcome), "limit": limit}
    return [stored_row(fields) for fields in connection.execute(_ENDED, values)]


_FIND: Final = f"""
SELECT {", ".join(COLUMNS)} FROM call
WHERE number > coalesce((SELECT max(number) FROM call), 0) - {SEARCHED_ROWS} AND id = %s AND principal = %s
ORDER BY number DESC LIMIT 1
"""


def find_call(connection: Connection, call_id: str, principal: str) -> CallRow | None:
    """Returns a principal's call by its id, if it is among the newest ``SEARCHED_ROWS``."""
    columns = connection.execute(_FIND, (pg_text(call_id), pg_text(principal))).fetchone()
    return None if columns is None else stored_row(columns)


_SUMS: Final = """
SELECT tool, outcome, provider, model, simulated, currency,
       sum(calls)::int8, sum(input_tokens)::int8, sum(output_tokens)::int8, sum(cost), min(since)
FROM call_total WHERE %(principal)s::text IS NULL OR principal = %(principal)s
GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY tool, provider, model
"""


def totals(connection: Connection, principal: str | None = None) -> CallTotals:
    """Returns the sums over all calls ever recorded, or over those of one principal."""
    rows = connection.execute(_SUMS, {"principal": _optional(principal)})
    return summed(stored_values(columns) for columns in rows)


def merge_old_totals(connection: Connection, chain: int, before: float) -> None:
    """Merges the sums of principals that made no call since a Unix time, so that their number is bounded."""
    old = connection.execute(
        "SELECT principal FROM call_total WHERE chain = %s AND principal <> '' "
        "GROUP BY principal HAVING max(until) < %s LIMIT %s",
        (chain, before, SLICE),
    ).fetchall()
    if old:
        names = [principal for (principal,) in old]
        connection.execute(_MERGE_TOTALS + _ADDED, (chain, names))
        connection.execute("DELETE FROM call_total WHERE chain = %s AND principal = ANY(%s)", (chain, names))


def calls_of_day(connection: Connection, day: str) -> dict[tuple[str, str], int]:
    """Returns how many calls began on a day (UTC), by principal and tool, without failed calls that had no effect."""
    begin = dt.datetime.fromisoformat(day).replace(tzinfo=dt.UTC).timestamp()
    rows = connection.execute(
        "SELECT principal, tool, count(*) FROM call WHERE started_at >= %s AND started_at < %s "
        "AND (outcome = 'ok' OR executed <> 'no') GROUP BY principal, tool",
        (begin, begin + 86400),
    )
    return {(text_of(principal), text_of(tool)): number for principal, tool, number in rows}


def _optional(text: str | None) -> str | None:
    return None if text is None else pg_text(text)
