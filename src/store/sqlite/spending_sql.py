"""The SQL of the spending at vendors, by day. Each function takes a few milliseconds."""

import sqlite3
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from ..daily_usage import DailyUsage, day_of
from ..store_limits import RETENTION_DAYS

_COLUMNS: Final = DailyUsage.__struct_fields__

_ADD = f"""
INSERT INTO day_spent ({", ".join(_COLUMNS)}) VALUES ({", ".join("?" * len(_COLUMNS))})
ON CONFLICT DO UPDATE SET
    completions = completions + excluded.completions,
    input_tokens = input_tokens + excluded.input_tokens,
    output_tokens = output_tokens + excluded.output_tokens,
    cached_tokens = cached_tokens + excluded.cached_tokens,
    cost = cost + excluded.cost,
    estimated = estimated + excluded.estimated
"""  # noqa: S608 - our own names


def add(connection: sqlite3.Connection, sums: Iterable[DailyUsage]) -> None:
    """Adds to the sums, within the caller's transaction. There are few entries, so each has its own statement."""
    for usage in sums:
        connection.execute(_ADD, msgspec.structs.astuple(usage))


def since(connection: sqlite3.Connection, day: str, principal: str | None = None) -> list[DailyUsage]:
    """Returns the sums since a day, newest day first, of all principals or of one."""
    rows = connection.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM day_spent "  # noqa: S608 - our own names
        "WHERE day >= ?1 AND (?2 IS NULL OR principal = ?2) ORDER BY day DESC, principal, tool, agent, provider, model",
        (day, principal),
    )
    return [_daily_usage(columns) for columns in rows]


def _daily_usage(columns: Iterable[Any]) -> DailyUsage:
    fields = dict(zip(_COLUMNS, columns, strict=True))
    fields["simulated"] = bool(fields["simulated"])
    return DailyUsage(**fields)


def delete_expired(connection: sqlite3.Connection, now: float) -> None:
    """Deletes the sums of days that are ``RETENTION_DAYS`` ago or more; they are few."""
    connection.execute("DELETE FROM day_spent WHERE day <= ?", (day_of(now - RETENTION_DAYS * 86400),))
