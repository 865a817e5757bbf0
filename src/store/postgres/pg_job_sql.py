"""The SQL of jobs on PostgreSQL (``stored_jobs.py``). Only reads."""

from collections.abc import Sequence
from typing import Final

from ..stored_jobs import JobStatements


def _as_list(tools: Sequence[str]) -> list[str]:
    return list(tools)


JOB_STATEMENTS: Final = JobStatements(
    # The run of a call that created a detached call differs from the call's id. A job is unfinished, or has child
    # calls.
    jobs="""
SELECT run.call_id, run.tool, run.run, run.started_at, detached.call_id IS NOT NULL
FROM run LEFT JOIN detached ON detached.call_id = run.call_id
LEFT JOIN journal AS first ON first.number = (
    SELECT min(number) FROM journal WHERE session_id = run.run AND child)
WHERE run.principal = %(principal)s AND run.tool = ANY(%(tools)s) AND run.run = run.call_id
  AND (detached.call_id IS NOT NULL OR first.number IS NOT NULL)
  AND run.call_id = coalesce(%(job_id)s, run.call_id)
  AND (%(subject)s::text IS NULL
       OR substr(first.request_key, position(':' IN first.request_key) + 1) = %(subject)s)
  AND (run.started_at, run.call_id) < (%(before)s, %(before_id)s)
ORDER BY run.started_at DESC, run.call_id DESC LIMIT %(rows)s
""",
    steps="""
SELECT request_key, state, started_at, json_text(result) FROM journal WHERE session_id = %(run)s AND child
ORDER BY number
""",
    ended="SELECT outcome, message, latency_ms FROM call WHERE started_at = %(started_at)s AND id = %(call_id)s",
    # The index on started_at finds the first of these rows.
    ends="""
SELECT id, started_at + latency_ms / 1000 FROM call
WHERE started_at BETWEEN %(since)s AND %(until)s AND id > %(job)s || '/' AND id < %(job)s || '0' ORDER BY seq
""",
    tools_of=_as_list,
)
