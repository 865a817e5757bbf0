"""The SQL of searches in ended calls on PostgreSQL. Each function takes some tenths of a second at most."""

from typing import Any, Final

import msgspec
import psycopg

from ..audit_rows import COLUMNS
from ..call_filter import CallFilter, CallPage
from ..store_limits import MAX_CHILDREN, SCANNED_ROWS
from ..store_rows import CallRow
from .pg_audit_sql import stored_row
from .pg_values import pg_text

Connection = psycopg.Connection[tuple[Any, ...]]

_CONDITIONS: Final = {
    "principal": "principal = %(principal)s",
    "tool": "tool = %(tool)s",
    "outcome": "(outcome = %(outcome)s OR (%(outcome)s = 'error' AND outcome <> 'ok'))",
    "session": "(starts_with(session_label, %(session)s) OR session_id = %(session)s)",
    # In the collation C, lower() changes ASCII letters only, as in SQLite.
    "text": 'position(lower(%(text)s COLLATE "C") IN '
    "lower((id || ' ' || coalesce(message, '') || ' ' || coalesce(arguments, '')) COLLATE \"C\")) > 0",
    "since": "started_at >= %(since)s",
    "until": "started_at < %(until)s",
}


def search(
    connection: Connection, wanted: CallFilter, before: int | None, limit: int, *, rows: int = SCANNED_ROWS
) -> CallPage:
    """Searches the next ``rows`` calls that ended before the call with number ``before``; returns those that match a
    filter.
    """
    given = {name: value for name, value in msgspec.structs.asdict(wanted).items() if value}
    values: dict[str, Any] = {name: pg_text(v) if isinstance(v, str) else v for name, v in given.items()}
    top = _first_below(connection, before)
    if top is None:
        return CallPage(calls=[], searched_to=None, before=None)
    floor = top - rows
    conditions = "".join(f" AND {_CONDITIONS[name]}" for name in values)
    found = connection.execute(
        f"SELECT number, {', '.join(COLUMNS)} FROM call WHERE number <= %(top)s AND number > %(floor)s{conditions} "
        "ORDER BY number DESC LIMIT %(limit)s",
        {**values, "top": top, "floor": floor, "limit": limit},
    ).fetchall()
    last = found[-1][0] if len(found) == limit else floor + 1
    oldest = connection.execute(
        "SELECT started_at FROM call WHERE number >= %s ORDER BY number LIMIT 1", (last,)
    ).fetchone()
    more = _first_below(connection, last) is not None
    return CallPage(
        calls=[stored_row(fields[1:]) for fields in found],
        searched_to=oldest[0] if oldest else None,
        before=last if more else None,
    )


def _first_below(connection: Connection, before: int | None) -> int | None:
    """The number of the newest call, or of the newest before a number."""
    row = connection.execute(
        "SELECT max(number) FROM call WHERE %(before)s::int8 IS NULL OR number < %(before)s", {"before": before}
    ).fetchone()
    return None if row is None or row[0] is None else int(row[0])


_TREE: Final = f"""
SELECT {", ".join(COLUMNS)} FROM call
WHERE number > coalesce((SELECT max(number) FROM call), 0) - {SCANNED_ROWS}
  AND (id = %(id)s OR starts_with(id, %(id)s || '/'))
  AND (%(principal)s::text IS NULL OR principal = %(principal)s)
ORDER BY started_at, number LIMIT {MAX_CHILDREN + 1}
"""


def call_tree(connection: Connection, call_id: str, principal: str | None) -> list[CallRow]:
    """Returns a call and its descendants, in the order in which they started, among the newest ``SCANNED_ROWS``."""
    values = {"id": pg_text(call_id), "principal": None if principal is None else pg_text(principal)}
    return [stored_row(fields) for fields in connection.execute(_TREE, values)]
