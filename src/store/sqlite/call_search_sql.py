"""The SQL of searches in ended calls. Each function takes some tenths of a second at most."""

import sqlite3
from typing import Any, Final

import msgspec

from ..audit_rows import COLUMNS, audit_row
from ..call_filter import CallFilter, CallPage
from ..store_limits import MAX_CHILDREN, SCANNED_ROWS
from ..store_rows import CallRow

_CONDITIONS: Final = {
    "principal": "principal = :principal",
    "tool": "tool = :tool",
    "outcome": "(outcome = :outcome OR (:outcome = 'error' AND outcome != 'ok'))",
    "session": "(substr(session_label, 1, length(:session)) = :session OR session_id = :session)",
    "text": "instr(lower(id || ' ' || coalesce(message, '') || ' ' || coalesce(arguments, '')), lower(:text)) > 0",
    "since": "started_at >= :since",
    "until": "started_at < :until",
}


def search(
    connection: sqlite3.Connection, wanted: CallFilter, before: int | None, limit: int, *, rows: int = SCANNED_ROWS
) -> CallPage:
    """Returns the calls that match a filter, among the ``rows`` calls that ended before the one with seq ``before``."""
    values: dict[str, Any] = {name: value for name, value in msgspec.structs.asdict(wanted).items() if value}
    top = _first_below(connection, before)
    if top is None:
        return CallPage(calls=[], searched_to=None, before=None)
    floor = top - rows
    conditions = "".join(f" AND {_CONDITIONS[name]}" for name in values)
    statement = (
        f"SELECT seq, {', '.join(COLUMNS)} FROM call WHERE seq <= :top AND seq > :floor{conditions} "  # noqa: S608 - our own names
        "ORDER BY seq DESC LIMIT :limit"
    )
    found = connection.execute(statement, {**values, "top": top, "floor": floor, "limit": limit}).fetchall()
    last = found[-1][0] if len(found) == limit else floor + 1
    oldest = connection.execute("SELECT started_at FROM call WHERE seq >= ? ORDER BY seq LIMIT 1", (last,)).fetchone()
    more = _first_below(connection, last) is not None
    return CallPage(
        calls=[audit_row(fields[1:]) for fields in found],
        searched_to=oldest[0] if oldest else None,
        before=last if more else None,
    )


def _first_below(connection: sqlite3.Connection, before: int | None) -> int | None:
    """The seq of the newest call, or of the newest before a seq."""
    (seq,) = connection.execute(
        "SELECT max(seq) FROM call" if before is None else "SELECT max(seq) FROM call WHERE seq < ?",
        () if before is None else (before,),
    ).fetchone()
    return None if seq is None else int(seq)


_TREE = f"""
SELECT {", ".join(COLUMNS)} FROM call
WHERE seq > coalesce((SELECT max(seq) FROM call), 0) - {SCANNED_ROWS}
  AND (id = :id OR substr(id, 1, length(:id) + 1) = :id || '/') AND (:principal IS NULL OR principal = :principal)
ORDER BY started_at, seq LIMIT {MAX_CHILDREN + 1}
"""  # noqa: S608 - our own names


def call_tree(connection: sqlite3.Connection, call_id: str, principal: str | None) -> list[CallRow]:
    """Returns a call and its descendants, in the order in which they started, among the newest ``SCANNED_ROWS``."""
    return [audit_row(fields) for fields in connection.execute(_TREE, {"id": call_id, "principal": principal})]
