"""The SQL of the rates, quotas and running calls that all nodes share. Functions in the database (pg_schema_2.sql)
decide, so each decision is one statement.
"""

from collections.abc import Sequence
from typing import Any

import psycopg

from ..shared_limits import QuotaUse, RateSlot, RunningShare, TakenCall
from .pg_values import pg_text

Connection = psycopg.Connection[tuple[Any, ...]]


def reserve_slot(
    connection: Connection, source: str, principal: str, *, interval_s: float, burst: int, max_wait_s: float
) -> RateSlot:
    """Reserves the next slot of a source's rate, if the call can wait for it."""
    row = connection.execute(
        "SELECT * FROM reserve_slot(%s, %s, %s::float8, %s, %s::float8)",
        (source, pg_text(principal), interval_s, burst, max_wait_s),
    ).fetchone()
    return RateSlot(*(row or ()))


def take_call(connection: Connection, principal: str, quotas: Sequence[QuotaUse]) -> TakenCall:
    """Counts a call in all quotas, or in none of them."""
    row = connection.execute(
        "SELECT * FROM take_call(%s, %s::text[], %s::bigint[], %s::bigint[], %s::bigint[])",
        (
            pg_text(principal),
            [quota.name for quota in quotas],
            [quota.per_minute for quota in quotas],
            [quota.per_day for quota in quotas],
            [quota.known for quota in quotas],
        ),
    ).fetchone()
    return TakenCall(*(row or ()))


def share_running(
    connection: Connection, node: str, principal: str, *, max_running: int, wants: int, uses: int
) -> RunningShare:
    """Changes how many of a principal's permits a node wants."""
    row = connection.execute(
        "SELECT * FROM share_running(%s, %s, %s, %s, %s)", (node, pg_text(principal), max_running, wants, uses)
    ).fetchone()
    return RunningShare(*(row or ()))
