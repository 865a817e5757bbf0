"""Jobs: detached calls of certain tools whose first child call has the name of the deployment. Only reads.

The data of a job come from its entry in ``run``, its child calls in the journal, and its audit row. Each database has
its own SQL for these queries.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from .run_rows import JobStep, StoredJob

Ask = Callable[[str, Mapping[str, Any]], Iterable[Sequence[Any]]]
"""Runs a statement with named values; returns its rows."""

PAGE_ROWS: Final = 100
"""Jobs that one statement returns."""
_SUFFIX: Final = re.compile(r"~[0-9a-f]+$")
"""The suffix in the ids of child calls that a resumed job made."""


class JobStatements(NamedTuple):
    """The SQL of one database."""

    jobs: str
    """The next ``rows`` jobs of ``principal`` and ``tools`` (``tools_of``) before ``before`` and ``before_id``, newest
    first: id, tool, run, time of start, whether it is unfinished. ``job_id`` and ``subject`` may be None."""
    steps: str
    """The child calls of ``run``: name, state, time of start, result as JSON."""
    ended: str
    """Outcome, message and latency of the audit row of ``call_id``, which started at ``started_at``."""
    ends: str
    """Ids of the descendants of ``job`` that started between ``since`` and ``until``, and when they ended, by the audit
    rows: the journal has the ends by the store's clock."""
    tools_of: Callable[[Sequence[str]], Any]
    """The value of ``tools``."""


def list_jobs(
    ask: Ask,
    sql: JobStatements,
    principal: str,
    tools: Collection[str],
    *,
    job_id: str | None = None,
    subject: str | None = None,
    outcomes: Collection[str] | None = None,
    limit: int,
) -> list[StoredJob]:
    """Returns a principal's jobs, newest first: calls of these tools. ``subject``: the name of the deployment;
    ``outcomes``: any of ``ok``, ``CANCELLED``, ``error`` (all other codes) and ``unfinished``.
    """
    found: list[StoredJob] = []
    values = {"principal": principal, "tools": sql.tools_of(sorted(tools)), "job_id": job_id, "subject": subject}
    for row in _newest(ask, sql, values):
        job = _job(ask, sql, *row)
        if outcomes is None or _kind(job) in outcomes:
            found.append(job)
        if len(found) == limit:
            break
    return found


def job_step_ends(ask: Ask, sql: JobStatements, job: StoredJob) -> dict[str, float]:
    """Returns when the child calls of a job ended, by their names, in Unix seconds, as far as the audit has them."""
    until = math.inf if job.ended_at is None else job.ended_at + 1
    rows = ask(sql.ends, {"since": job.created_at - 1, "until": until, "job": job.id})
    return {_SUFFIX.sub("", call_id[len(job.id) + 1 :]): ended_at for call_id, ended_at in rows}


def _newest(ask: Ask, sql: JobStatements, values: Mapping[str, Any]) -> Iterator[Sequence[Any]]:
    before: tuple[float, str] = math.inf, ""
    while True:
        page = list(ask(sql.jobs, {**values, "before": before[0], "before_id": before[1], "rows": PAGE_ROWS}))
        yield from page
        if len(page) < PAGE_ROWS:
            return
        before = page[-1][3], page[-1][0]


def _kind(job: StoredJob) -> str:
    if job.unfinished:
        return "unfinished"
    return job.outcome if job.outcome in {"ok", "CANCELLED"} else "error"


def _job(
    ask: Ask,
    sql: JobStatements,
    call_id: str,
    tool: str,
    run: str,
    started_at: float,
    unfinished: int,
) -> StoredJob:
    steps = tuple(_step(*row) for row in ask(sql.steps, {"run": run}))
    job = StoredJob(id=call_id, tool=tool, created_at=started_at, unfinished=bool(unfinished), steps=steps)
    ended = None if unfinished else next(iter(ask(sql.ended, {"started_at": started_at, "call_id": call_id})), None)
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
