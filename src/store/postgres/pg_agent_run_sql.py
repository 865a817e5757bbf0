"""The SQL of recorded runs of agents on PostgreSQL (``agent_runs.py``): their list, and the child calls of one run."""

from collections.abc import Sequence
from typing import Final

from ..agent_runs import AgentRunStatements


def _as_list(roots: Sequence[str]) -> list[str]:
    return list(roots)


_OF_RUN: Final = "(session_id = %(run)s OR (session_id > %(run)s || '/' AND session_id < %(run)s || '0'))"
_CALLS: Final = """
SELECT call_id, run, run.tool, run.principal, run.started_at, outcome, stopped_by, unfinished
FROM run JOIN journal ON session_id = run.run AND request_key = 'snapshot' AND journal.tool = 'agent_snapshot'
"""
AGENT_RUN_STATEMENTS: Final = AgentRunStatements(
    newest=f"""{_CALLS}
WHERE run.principal = coalesce(%(principal)s, run.principal) AND run.tool = coalesce(%(agent)s, run.tool)
  AND (run.started_at, call_id) < (%(before)s, %(before_id)s)
ORDER BY run.started_at DESC, call_id DESC LIMIT %(rows)s
""",
    of_run=f"{_CALLS} WHERE run = %(run)s ORDER BY run.started_at DESC LIMIT 1",
    run_of="""
SELECT coalesce(detached.run, run.run), run.principal FROM run LEFT JOIN run AS detached ON detached.call_id = run.run
WHERE run.call_id = %(call_id)s
""",
    counts=f"""
SELECT count(*) FILTER (WHERE tool = 'agent_turn' AND request_key NOT LIKE '%%#%%'),
       count(*) FILTER (WHERE request_key ~ '^t[0-9].*[.][0-9]' OR session_id = %(run)s AND request_key ~ 's[0-9]'
                        AND tool NOT IN ('agent_turn', 'agent_role', 'agent_step', 'agent_read_step'))
FROM journal WHERE child AND {_OF_RUN}
""",
    began="SELECT started_at FROM run WHERE call_id = %(call_id)s",
    ended="SELECT outcome, message, latency_ms FROM call WHERE started_at = %(started_at)s AND id = %(call_id)s",
    requests="""
SELECT (SELECT count(*) FROM input_request WHERE number = detached.number AND decision_hash IS NULL),
       expires_at IS NOT NULL
FROM detached WHERE call_id = %(call_id)s
""",
    nested="""
SELECT tool, principal, state, started_at, json_text(result)::json #>> '{error,code}'
FROM journal WHERE session_id = %(path)s AND request_key = %(name)s AND child
  AND EXISTS (SELECT 1 FROM journal WHERE session_id = %(run)s AND request_key = 'snapshot')
""",
    spent="""
SELECT root, cost_currency, sum(input_tokens)::bigint, sum(output_tokens)::bigint, coalesce(sum(cost_amount), 0) FROM (
    SELECT split_part(id, '/', 1) AS root, id, cost_currency, input_tokens, output_tokens, cost_amount
    FROM call WHERE started_at BETWEEN %(since)s AND %(until)s AND input_tokens + output_tokens > 0
) AS spending WHERE root = ANY(%(roots)s)
  AND (%(inner)s = '' OR id = root || '/' || %(inner)s
       OR (id > root || '/' || %(inner)s || '/' AND id < root || '/' || %(inner)s || '0'))
GROUP BY root, cost_currency
""",
    entries=f"""
SELECT session_id, request_key, tool,
       CASE WHEN state = 'done' AND NOT unfinished AND ended_at < %(results_since)s THEN 'expired' ELSE state END,
       started_at, result_bytes, json_text(result)::json #>> '{{error,code}}',
       CASE WHEN %(all_results)s OR tool IN ('agent_snapshot', 'agent_turn', 'agent_summary', 'agent_role')
            THEN result END
FROM journal WHERE child AND {_OF_RUN} ORDER BY number
""",
    roots_of=_as_list,
)
