"""The SQL of what was spent at the vendors, by day. Each function takes a few milliseconds."""

import datetime as dt
import sqlite3
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from ..protocol.tool_call import ModelUsage
from .store_rows import CallRow

RETENTION_DAYS: Final = 400
"""How long sums are stored: a year can be compared with the year before."""

MAX_COUNT: Final = 2**53
"""The largest accepted count from a vendor, near the largest integers of SQLite, and of JSON in most languages."""


class DailyUsage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The spending of one principal, tool and model on one day. Its fields are the columns of ``day_spent``."""

    day: str
    """``YYYY-MM-DD`` in UTC; a call belongs to the day on which it ended."""
    principal: str
    tool: str
    provider: str
    model: str
    """The catalog's id."""
    simulated: bool
    currency: str
    """Empty if the model has no known price."""
    completions: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    """Part of ``input_tokens``."""
    cost: float
    estimated: int
    """The number of calls with an estimated token count."""


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


def day_of(at: float) -> str:
    """Returns the day in UTC of a Unix time."""
    return dt.datetime.fromtimestamp(at, dt.UTC).date().isoformat()


def by_day(row: CallRow, usage_by_model: Iterable[ModelUsage], at: float) -> list[DailyUsage]:
    """Returns what a call that ended at a Unix time adds to the sums, by model."""
    return [
        DailyUsage(
            day=day_of(at),
            principal=row.principal,
            tool=row.tool,
            provider=part.provider,
            model=part.model,
            simulated=row.simulated,
            currency=part.cost.currency if part.cost else "",
            completions=part.completions,
            input_tokens=min(part.usage.input_tokens, MAX_COUNT),
            output_tokens=min(part.usage.output_tokens, MAX_COUNT),
            cached_tokens=min(part.usage.cached_tokens, MAX_COUNT),
            cost=part.cost.amount if part.cost else 0.0,
            estimated=int(part.usage.estimated),
        )
        for part in usage_by_model
    ]


def add(connection: sqlite3.Connection, sums: Iterable[DailyUsage]) -> None:
    """Adds to the sums, within the caller's transaction. Calls of vendors are few, so each has its own statement."""
    for usage in sums:
        connection.execute(_ADD, msgspec.structs.astuple(usage))


def since(connection: sqlite3.Connection, day: str, principal: str | None = None) -> list[DailyUsage]:
    """Returns the sums since a day, newest day first, of all principals or of one."""
    rows = connection.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM day_spent "  # noqa: S608 - our own names
        "WHERE day >= ?1 AND (?2 IS NULL OR principal = ?2) ORDER BY day DESC, principal, tool, provider, model",
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
