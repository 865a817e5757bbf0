"""The SQL of jobs (``stored_jobs.py``). Only reads."""

import json
import sqlite3
from collections.abc import Collection, Sequence
from typing import Final

from ..run_rows import StoredJob
from ..stored_jobs import JobStatements, job_step_ends, list_jobs


def _as_json(tools: Sequence[str]) -> str:
    return json.dumps(tools)


_STATEMENTS: Final = JobStatements(
    # A call that created a detached call, whose run differs from its id, is not a job. A job is unfinished, or has
    # children.
    jobs="""
SELECT run.call_id, run.tool, run.run, run.started_at, detached.call_id IS NOT NULL
FROM run LEFT JOIN detached ON detached.call_id = run.call_id
LEFT JOIN journal AS first ON first.number = (
    SELECT min(number) FROM journal WHERE session_id = run.run AND child)
WHERE run.principal = :principal AND run.tool IN (SELECT value FROM json_each(:tools)) AND run.run = run.call_id
  AND (detached.call_id IS NOT NULL OR first.number IS NOT NULL)
  AND run.call_id = coalesce(:job_id, run.call_id)
  AND (:subject IS NULL OR substr(first.request_key, instr(first.request_key, ':') + 1) = :subject)
  AND run.started_at <= :before AND (run.started_at, run.call_id) < (:before, :before_id)
ORDER BY run.started_at DESC, run.call_id DESC LIMIT :rows
""",
    steps="""
SELECT request_key, state, started_at,
       CASE WHEN state = 'done' AND json_valid(CAST(result AS TEXT)) THEN CAST(result AS TEXT) END
FROM journal LEFT JOIN result USING (number) WHERE session_id = :run AND child ORDER BY number
""",
    ended="SELECT outcome, message, latency_ms FROM call WHERE started_at = :started_at AND id = :call_id",
    # The index on started_at finds the first of these rows.
    ends="""
SELECT id, started_at + latency_ms / 1000 FROM call
WHERE started_at BETWEEN :since AND :until AND id > :job || '/' AND id < :job || '0' ORDER BY seq
""",
    tools_of=_as_json,
)


def jobs(
    connection: sqlite3.Connection,
    principal: str,
    tools: Collection[str],
    *,
    job_id: str | None = None,
    subject: str | None = None,
    outcomes: Collection[str] | None = None,
    limit: int,
) -> list[StoredJob]:
    """Returns a principal's jobs, newest first, as ``list_jobs`` does."""
    return list_jobs(
        connection.execute,
        _STATEMENTS,
        principal,
        tools,
        job_id=job_id,
        subject=subject,
        outcomes=outcomes,
        limit=limit,
    )


def step_ends(connection: sqlite3.Connection, job: StoredJob) -> dict[str, float]:
    """Returns when the child calls of a job ended, by their names."""
    return job_step_ends(connection.execute, _STATEMENTS, job)
