"""The SQL of what was spent at the vendors, by day. Each function is one short piece of work."""

import datetime as dt
import sqlite3
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from ..protocol.tool_call import ModelUsage
from .store_rows import CallRow

KEPT_DAYS: Final = 400
"""Sums are kept for so long: a year can be laid beside the one before."""

MAX_COUNT: Final = 2**53
"""What a vendor counts beyond this is no count; SQLite's integers, and JSON's in most languages, end not far above."""


class DaySpent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one tool took of one model on one day, for one principal; its fields are the columns of ``day_spent``."""

    day: str
    """``YYYY-MM-DD`` in UTC; a call belongs to the day on which it ended."""
    principal: str
    tool: str
    provider: str
    model: str
    """The catalog's id."""
    simulated: bool
    currency: str
    """Empty where the model has no known price."""
    completions: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    """Part of ``input_tokens``."""
    cost: float
    estimated: int
    """Calls of which some tokens are our own estimate."""


_COLUMNS: Final = DaySpent.__struct_fields__

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
    """The day in UTC of a Unix time."""
    return dt.datetime.fromtimestamp(at, dt.UTC).date().isoformat()


def by_day(row: CallRow, spent: Iterable[ModelUsage], at: float) -> list[DaySpent]:
    """What a call that ended at a Unix time adds to the sums, by model."""
    return [
        DaySpent(
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
        for part in spent
    ]


def add(connection: sqlite3.Connection, sums: Iterable[DaySpent]) -> None:
    """Add to the sums, within a transaction of the caller's. Calls of vendors are few, so each has its statement."""
    for one in sums:
        connection.execute(_ADD, msgspec.structs.astuple(one))


def since(connection: sqlite3.Connection, day: str) -> list[DaySpent]:
    """The sums of this day and of those after it, the newest day first."""
    found = connection.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM day_spent WHERE day >= ? "  # noqa: S608 - our own names
        "ORDER BY day DESC, principal, tool, provider, model",
        (day,),
    )
    return [_day_spent(columns) for columns in found]


def _day_spent(columns: Iterable[Any]) -> DaySpent:
    fields = dict(zip(_COLUMNS, columns, strict=True))
    fields["simulated"] = bool(fields["simulated"])
    return DaySpent(**fields)


def forget_old(connection: sqlite3.Connection, now: float) -> None:
    """Remove the sums of days that are ``KEPT_DAYS`` ago or more; they are few."""
    connection.execute("DELETE FROM day_spent WHERE day <= ?", (day_of(now - KEPT_DAYS * 86400),))
