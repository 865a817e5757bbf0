"""The SQL of the limits that all nodes share: provider permits and daily budgets. Functions in the database
(pg_schema_2.sql) decide, so each decision is one statement.
"""

from typing import Any, Final

import msgspec
import psycopg

from ...protocol.tool_call import Cost
from ..shared_limits import AdmitAnswer, AdmitDecision, AdmitRequest, BudgetUse
from .pg_values import pg_text, text_of

Connection = psycopg.Connection[tuple[Any, ...]]

LIMITS_CHANNEL: Final = "toold_limits"
"""Notified with the epoch of a node and the name of a limit, for ``SharedLimitsPort.on_wake``."""

_ADMIT: Final = """
SELECT decision, uses::text FROM admit(%s, %s, %s, %s, %s, %s::text[], %s, %s::float8, %s::text[], %s::text[],
                                       %s::float8[], %s::float8[])
"""
# Sums exclude the rows of nodes that were declared dead during their request.
_USES: Final = """
SELECT scope, currency, coalesce(max(spent), 0), coalesce(sum(reserved), 0) FROM (
    SELECT scope, currency, spent, NULL::float8 AS reserved FROM budget WHERE day = budget_day()
    UNION ALL
    SELECT unnest(scopes), currency, NULL, amount FROM vendor_request JOIN node ON epoch = vendor_request.node
    WHERE currency IS NOT NULL AND state <> 'dead'
) AS used GROUP BY scope, currency
"""


def admit(connection: Connection, node: str, request: AdmitRequest, *, may_take: bool) -> AdmitAnswer:
    """Takes a permit and reserves the estimate if no limit is exceeded."""
    limits, estimate = request.limits, request.estimate
    row = connection.execute(
        _ADMIT,
        (
            node,
            request.id,
            request.provider,
            request.permits,
            may_take,
            [pg_text(scope) for scope in request.scopes],
            None if estimate is None else estimate.currency,
            None if estimate is None else estimate.amount,
            [pg_text(limit.scope) for limit in limits],
            [limit.currency for limit in limits],
            [limit.amount for limit in limits],
            [limit.known for limit in limits],
        ),
    ).fetchone()
    decision, uses = row or ("busy", None)
    found = [] if uses is None else msgspec.json.decode(uses, type=list[BudgetUse])
    checked: AdmitDecision = msgspec.convert(decision, AdmitDecision)
    return AdmitAnswer(checked, [use._replace(scope=text_of(use.scope)) for use in found])


def settle(connection: Connection, request_id: int, cost: Cost | None) -> None:
    """Releases the permit and the reservation, and records the cost."""
    currency, amount = (None, 0.0) if cost is None else (cost.currency, cost.amount)
    connection.execute("SELECT settle(%s, %s, %s::float8)", (request_id, currency, amount))


def withdraw(connection: Connection, node: str, provider: str) -> None:
    """Leaves the queue for a permit, and wakes the next node."""
    connection.execute(
        "WITH left_line AS "
        "(DELETE FROM permit_wait WHERE provider = %(provider)s AND node = %(node)s RETURNING provider) "
        "SELECT pg_notify(%(channel)s, node || ' provider:' || provider) FROM (SELECT node, provider FROM permit_wait "
        "WHERE provider IN (SELECT provider FROM left_line) AND node <> %(node)s ORDER BY number LIMIT 1) AS next",
        {"provider": provider, "node": node, "channel": LIMITS_CHANNEL},
    )


def held(connection: Connection, node: str) -> frozenset[int]:
    """Returns the ids of a node's running requests."""
    rows = connection.execute("SELECT id FROM vendor_request WHERE node = %s", (node,))
    return frozenset(request_id for (request_id,) in rows.fetchall())


def budget_uses(connection: Connection) -> list[BudgetUse]:
    """Returns the amounts that are spent and reserved today."""
    return [
        BudgetUse(text_of(scope), currency, spent, reserved)
        for scope, currency, spent, reserved in connection.execute(_USES).fetchall()
    ]


def free_limits(connection: Connection, node: str) -> None:
    """Releases the permits of a dead node, and records its reservations as spent, within the caller's transaction."""
    connection.execute("SELECT free_limits(%s)", (node,))


def delete_expired(connection: Connection) -> None:
    """Deletes budgets of past days, and requests of nodes that were declared dead during their request."""
    connection.execute("DELETE FROM budget WHERE day < to_char(clock_timestamp() - interval '2 days', 'YYYY-MM-DD')")
    connection.execute("DELETE FROM quota_day WHERE day < to_char(clock_timestamp() - interval '2 days', 'YYYY-MM-DD')")
    for table, expired in (("quota_second", "second"), ("rate_slot", "next_at")):
        connection.execute(
            f"DELETE FROM {table} WHERE {expired} < extract(epoch FROM clock_timestamp()) - 3600".encode()
        )
    connection.execute(
        "DELETE FROM vendor_request WHERE NOT EXISTS "
        "(SELECT FROM node WHERE epoch = vendor_request.node AND state <> 'dead')"
    )
