"""The SQL of recorded runs of agents (``agent_runs.py``): their list, and the child calls of one run."""

import json
import sqlite3
from collections.abc import Collection, Sequence
from typing import Final

from ...protocol.agent_record import AgentRecord, AgentRunState, AgentRunSummary
from ..agent_runs import AgentRunStatements, find_agent_run, list_agent_runs


def _as_json(roots: Sequence[str]) -> str:
    return json.dumps(roots)


# CROSS JOIN keeps the order of the index on started_at.
_CALLS: Final = """
SELECT call_id, run, run.tool, run.principal, run.started_at, outcome, stopped_by, unfinished
FROM run CROSS JOIN journal ON session_id = run.run AND request_key = 'snapshot' AND journal.tool = 'agent_snapshot'
"""
_STATEMENTS: Final = AgentRunStatements(
    newest=f"""{_CALLS}
WHERE run.principal = coalesce(:principal, run.principal) AND run.tool = coalesce(:agent, run.tool)
  AND run.started_at <= :before AND (run.started_at, call_id) < (:before, :before_id)
ORDER BY run.started_at DESC, call_id DESC LIMIT :rows
""",
    of_run=f"{_CALLS} WHERE run = :run ORDER BY run.started_at DESC LIMIT 1",
    run_of="""
SELECT coalesce(detached.run, run.run), run.principal FROM run LEFT JOIN run AS detached ON detached.call_id = run.run
WHERE run.call_id = :call_id
""",
    counts="""
SELECT count(*) FILTER (WHERE tool = 'agent_turn' AND request_key NOT LIKE '%#%'),
       count(*) FILTER (WHERE request_key GLOB 't[0-9]*.[0-9]*' OR session_id = :run AND request_key GLOB '*s[0-9]*'
                        AND tool NOT IN ('agent_turn', 'agent_role', 'agent_step', 'agent_read_step'))
FROM journal WHERE child AND (session_id = :run OR (session_id > :run || '/' AND session_id < :run || '0'))
""",
    began="SELECT started_at FROM run WHERE call_id = :call_id",
    ended="SELECT outcome, message, latency_ms FROM call WHERE started_at = :started_at AND id = :call_id",
    requests="""
SELECT (SELECT count(*) FROM input_request WHERE number = detached.number AND decision_hash IS NULL),
       expires_at IS NOT NULL
FROM detached WHERE call_id = :call_id
""",
    nested="""
SELECT tool, principal, state, started_at,
       CASE WHEN json_valid(CAST(result AS TEXT)) THEN json_extract(CAST(result AS TEXT), '$.error.code') END
FROM journal LEFT JOIN result USING (number) WHERE session_id = :path AND request_key = :name AND child
  AND EXISTS (SELECT 1 FROM journal WHERE session_id = :run AND request_key = 'snapshot')
""",
    # SQLite finds the first of these rows by the index on started_at; it only compares the ids of other runs.
    spent="""
SELECT root, cost_currency, sum(input_tokens), sum(output_tokens), total(cost_amount) FROM (
    SELECT substr(id, 1, instr(id || '/', '/') - 1) AS root, id, cost_currency, input_tokens, output_tokens, cost_amount
    FROM call WHERE started_at BETWEEN :since AND :until AND input_tokens + output_tokens > 0
) WHERE root IN (SELECT value FROM json_each(:roots))
  AND (:inner = '' OR id = root || '/' || :inner
       OR (id > root || '/' || :inner || '/' AND id < root || '/' || :inner || '0'))
GROUP BY root, cost_currency
""",
    entries="""
SELECT session_id, request_key, tool,
       CASE WHEN state = 'done' AND NOT unfinished AND ended_at < :results_since THEN 'expired' ELSE state END,
       started_at, result_bytes,
       CASE WHEN json_valid(CAST(result AS TEXT)) THEN json_extract(CAST(result AS TEXT), '$.error.code') END,
       CASE WHEN :all_results OR tool IN ('agent_snapshot', 'agent_turn', 'agent_summary', 'agent_role') THEN result END
FROM journal LEFT JOIN result USING (number)
WHERE child AND (session_id = :run OR (session_id > :run || '/' AND session_id < :run || '0')) ORDER BY number
""",
    roots_of=_as_json,
)


def set_outcome(connection: sqlite3.Connection, call_id: str, outcome: str, stopped_by: str) -> None:
    """Stores the outcome of the run that this call continues."""
    connection.execute("UPDATE run SET outcome = ?, stopped_by = ? WHERE call_id = ?", (outcome, stopped_by, call_id))


def list_runs(
    connection: sqlite3.Connection,
    principal: str | None,
    *,
    agent: str | None = None,
    states: Collection[AgentRunState] = (),
    limit: int,
) -> list[AgentRunSummary]:
    """Returns the newest runs of agents, of a principal or of all, without those that another call made."""
    return list_agent_runs(connection.execute, _STATEMENTS, principal, agent=agent, states=states, limit=limit)


def find_run(
    connection: sqlite3.Connection, call_id: str, principal: str | None, *, results_since: float, all_results: bool
) -> AgentRecord | None:
    """Returns the run of an agent by the id of one of its calls, or by that of a child call that is an agent; None if
    there is none. Results from before ``results_since``, a time of the store's clock, are omitted; so are results of
    tools unless ``all_results`` is true.
    """
    return find_agent_run(
        connection.execute, _STATEMENTS, call_id, principal, results_since=results_since, all_results=all_results
    )
