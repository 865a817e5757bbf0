"""The SQL of the spending at vendors by day, on PostgreSQL. Each function takes a few milliseconds."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
import psycopg

from ..chain_extension import ChainExtension
from ..daily_usage import DailyUsage, day_of
from ..store_limits import RETENTION_DAYS
from . import pg_chain_sql
from .pg_values import pg_text, text_of

Connection = psycopg.Connection[tuple[Any, ...]]

_COLUMNS: Final = DailyUsage.__struct_fields__
_KEY: Final = ("day", "principal", "tool", "agent", "provider", "model", "simulated", "currency")
_SUMMED: Final = [name for name in _COLUMNS if name not in _KEY]

_ADD: Final = f"""
INSERT INTO day_spent (chain, {", ".join(_COLUMNS)}) VALUES (%s, {", ".join(["%s"] * len(_COLUMNS))})
ON CONFLICT (chain, {", ".join(_KEY)}) DO UPDATE SET
    {", ".join(f"{name} = day_spent.{name} + excluded.{name}" for name in _SUMMED)}
"""


def add(connection: Connection, chain: ChainExtension, sums: Iterable[DailyUsage]) -> None:
    """Adds amounts to the sums of the node that extends a chain, within the caller's transaction."""
    for usage in sums:
        connection.execute(_ADD, (pg_chain_sql.number_of(chain), *map(_stored, msgspec.structs.astuple(usage))))


def _stored(value: Any) -> Any:
    return pg_text(value) if isinstance(value, str) else value


def since(connection: Connection, day: str, principal: str | None = None) -> list[DailyUsage]:
    """Returns the sums since a day over all nodes, newest day first, of all principals or of one."""
    columns = ", ".join(f"sum({name})" if name in _SUMMED else name for name in _COLUMNS)
    rows = connection.execute(
        f"SELECT {columns} FROM day_spent "
        "WHERE day >= %(day)s AND (%(principal)s::text IS NULL OR principal = %(principal)s) "
        f"GROUP BY {', '.join(_KEY)} ORDER BY day DESC, principal, tool, agent, provider, model",
        {"day": pg_text(day), "principal": None if principal is None else pg_text(principal)},
    )
    return [_daily_usage(columns) for columns in rows]


def _daily_usage(columns: Iterable[Any]) -> DailyUsage:
    values = [text_of(value) if isinstance(value, str) else value for value in columns]
    fields: dict[str, Any] = dict(zip(_COLUMNS, values, strict=True))
    counts = ("completions", "input_tokens", "output_tokens", "cached_tokens", "estimated")
    return DailyUsage(**fields | {name: int(fields[name]) for name in counts})


def delete_expired(connection: Connection, now: float) -> None:
    """Deletes the sums of days that are at least ``RETENTION_DAYS`` ago; there are only a few."""
    connection.execute("DELETE FROM day_spent WHERE day <= %s", (day_of(now - RETENTION_DAYS * 86400),))
