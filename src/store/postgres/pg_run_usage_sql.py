"""The SQL of the usage of a run's calls on PostgreSQL (``run_spending.py``). Only reads."""

from typing import Final

from ..run_spending import RunUsageStatements

RUN_USAGE_STATEMENTS: Final = RunUsageStatements(
    roots="""
SELECT call_id, started_at FROM run WHERE (run = %(run)s OR call_id = %(run)s) AND principal = %(principal)s
""",
    calls="""
SELECT id, provider, model, simulated, input_tokens, output_tokens, cost_amount, cost_currency FROM call
WHERE started_at >= %(since)s AND principal = %(principal)s
  AND (id = %(call_id)s OR (id > %(call_id)s || '/' AND id < %(call_id)s || '0'))
  AND input_tokens + output_tokens > 0
""",
    spending="""
SELECT id, started_at + latency_ms / 1000, cost_amount, cost_currency FROM call
WHERE started_at >= %(since)s AND cost_amount > 0
""",
    is_child="""
SELECT 1 FROM journal WHERE session_id = %(run)s AND request_key = %(name)s AND child AND tool = %(tool)s
""",
    is_root="SELECT 1 FROM run WHERE call_id = %(call_id)s AND tool = %(tool)s",
    run_of="SELECT run FROM run WHERE call_id = %(call_id)s",
)
