"""The SQL of jobs: detached calls of certain tools whose first child call is named by what the job works on.

Only reads. What is known of a job are its entry of ``run``, its child calls in the journal, and its audit row.
"""

import json
import math
import re
import sqlite3
from collections.abc import Collection
from typing import Final

import msgspec

from ..run_rows import JobStep, StoredJob

# The call that created a detached call has another run than its own id. A job is either unfinished, or has child calls.
_JOBS: Final = """
SELECT run.call_id, run.tool, run.run, run.started_at, detached.call_id IS NOT NULL
FROM run LEFT JOIN detached ON detached.call_id = run.call_id
LEFT JOIN journal AS first ON first.number = (
    SELECT min(number) FROM journal WHERE session_id = run.run AND child)
WHERE run.principal = ?1 AND run.tool IN (SELECT value FROM json_each(?2)) AND run.run = run.call_id
  AND (detached.call_id IS NOT NULL OR first.number IS NOT NULL)
  AND run.call_id = coalesce(?3, run.call_id)
  AND (?4 IS NULL OR substr(first.request_key, instr(first.request_key, ':') + 1) = ?4)
ORDER BY run.started_at DESC
"""
_STEPS: Final = """
SELECT request_key, state, started_at,
       CASE WHEN state = 'done' AND json_valid(CAST(result AS TEXT)) THEN CAST(result AS TEXT) END
FROM journal LEFT JOIN result USING (number) WHERE session_id = ? AND child ORDER BY number
"""
_ENDED: Final = "SELECT outcome, message, latency_ms FROM call WHERE started_at = ? AND id = ?"

# The index on started_at finds the first of these rows. The journal has the ends by the store's clock, which stands
# still while no daemon runs.
_ENDS: Final = """
SELECT id, started_at + latency_ms / 1000 FROM call
WHERE started_at BETWEEN ?1 AND ?2 AND id > ?3 || '/' AND id < ?3 || '0' ORDER BY seq
"""
_SUFFIX: Final = re.compile(r"~[0-9a-f]+$")
"""The end of the ids of child calls that a resumed job made."""


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
    """Returns a principal's jobs, newest first: calls of these tools. ``subject``: what they work on; ``outcomes``: how
    they ended, of ``ok``, ``CANCELLED``, ``error`` for other codes, and ``unfinished``.
    """
    found: list[StoredJob] = []
    for row in connection.execute(_JOBS, (principal, json.dumps(sorted(tools)), job_id, subject)):
        job = _job(connection, *row)
        if outcomes is None or _kind(job) in outcomes:
            found.append(job)
        if len(found) == limit:
            break
    return found


def step_ends(connection: sqlite3.Connection, job: StoredJob) -> dict[str, float]:
    """Returns when the child calls of a job ended, by their names, in Unix seconds, as far as the audit has them."""
    until = math.inf if job.ended_at is None else job.ended_at + 1
    rows = connection.execute(_ENDS, (job.created_at - 1, until, job.id))
    return {_SUFFIX.sub("", call_id[len(job.id) + 1 :]): ended_at for call_id, ended_at in rows}


def _kind(job: StoredJob) -> str:
    if job.unfinished:
        return "unfinished"
    return job.outcome if job.outcome in {"ok", "CANCELLED"} else "error"


def _job(
    connection: sqlite3.Connection,
    call_id: str,
    tool: str,
    run: str,
    started_at: float,
    unfinished: int,
) -> StoredJob:
    steps = tuple(_step(*row) for row in connection.execute(_STEPS, (run,)))
    job = StoredJob(id=call_id, tool=tool, created_at=started_at, unfinished=bool(unfinished), steps=steps)
    ended = None if unfinished else connection.execute(_ENDED, (started_at, call_id)).fetchone()
    if ended is None:
        return job
    outcome, message, latency_ms = ended
    ended_at = started_at + latency_ms / 1000
    return msgspec.structs.replace(job, outcome=outcome, message=message, ended_at=ended_at)


def _step(name: str, state: str, started_at: float, result: str | None) -> JobStep:
    value = {} if result is None else msgspec.json.decode(result)
    error, fields = value.get("error"), value.get("structured")
    return JobStep(
        name=name,
        state=state,
        started_at=started_at,
        error=error.get("message") if isinstance(error, dict) else None,
        fields=fields if isinstance(fields, dict) else {},
    )
