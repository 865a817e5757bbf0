"""The SQL of the spending of runs (``run_spending.py``). Only reads."""

import sqlite3
from typing import Final

from ..run_rows import RunUsage
from ..run_spending import RunUsageStatements, run_usage, spending_of_tool

_STATEMENTS: Final = RunUsageStatements(
    roots="SELECT call_id, started_at FROM run WHERE (run = :run OR call_id = :run) AND principal = :principal",
    calls="""
SELECT id, provider, model, simulated, input_tokens, output_tokens, cost_amount, cost_currency FROM call
WHERE started_at >= :since AND principal = :principal
  AND (id = :call_id OR (id > :call_id || '/' AND id < :call_id || '0')) AND input_tokens + output_tokens > 0
""",
    spending="""
SELECT id, started_at + latency_ms / 1000, cost_amount, cost_currency FROM call
WHERE started_at >= :since AND cost_amount > 0
""",
    is_child="SELECT 1 FROM journal WHERE session_id = :run AND request_key = :name AND child AND tool = :tool",
    is_root="SELECT 1 FROM run WHERE call_id = :call_id AND tool = :tool",
    run_of="SELECT run FROM run WHERE call_id = :call_id",
)


def usage_of_run(connection: sqlite3.Connection, run: str, principal: str) -> list[RunUsage]:
    """Returns the spending of the ended calls of a principal's run, including the calls that resumed it."""
    return run_usage(connection.execute, _STATEMENTS, run, principal)


def spent_by_tool(connection: sqlite3.Connection, tool: str, day: str) -> dict[str, float]:
    """Returns the cost, by currency, of the calls of a tool and of their descendants that ended on a day in UTC
    (``YYYY-MM-DD``).
    """
    return spending_of_tool(connection.execute, _STATEMENTS, tool, day)
