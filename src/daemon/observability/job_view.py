"""The jobs of deployments for the platform API, from the journal and from running calls."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal

from ...deployment import CHECK_PHASE, DEPLOY_TOOL, UNDEPLOY_TOOL
from ...protocol.error_codes import NotFoundError, ServiceUnavailableError
from ...protocol.tool_call import Principal
from ...store import JobStep, Store, StoredJob, StoreError
from ...tools import CallInfo
from ..dispatch import Router

JobStatus = Literal["queued", "running", "completed", "failed", "cancelled"]
JOB_STATUSES: Final[tuple[JobStatus, ...]] = ("queued", "running", "completed", "failed", "cancelled")
MAX_LISTED_JOBS: Final = 100
"""The maximum number of jobs in a list; each needs several queries."""

_OPERATIONS: Final[Mapping[str, str]] = {DEPLOY_TOOL: "deploy", UNDEPLOY_TOOL: "undeploy"}
_OUTCOMES: Final[Mapping[JobStatus, str]] = {
    "queued": "unfinished",
    "running": "unfinished",
    "completed": "ok",
    "failed": "error",
    "cancelled": "CANCELLED",
}


class JobView:
    """Reads jobs for their principals."""

    def __init__(self, router: Router, store: Store) -> None:
        self._router = router
        self._store = store

    async def find(self, principal: Principal, job_id: str) -> dict[str, Any]:
        """The fields of a job.

        Raises:
            NotFoundError: the principal has no such job.
            ServiceUnavailableError: the database cannot be read.
        """
        return await self._shown(principal, await self._stored(principal, job_id))

    async def page(
        self, principal: Principal, *, subject: str | None, status: JobStatus | None, limit: int
    ) -> list[dict[str, Any]]:
        """The principal's jobs, newest first.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        outcomes = None if status is None else {_OUTCOMES[status]}
        stored = await self._read(principal, subject=subject, outcomes=outcomes, limit=limit)
        shown = [await self._shown(principal, job) for job in stored]
        return [job for job in shown if status is None or job["status"] == status]

    async def logs(self, principal: Principal, job_id: str, lines: int) -> list[str]:
        """The last lines of a job's log: when each phase began, and how it ended.

        Raises:
            NotFoundError: the principal has no such job.
            ServiceUnavailableError: the database cannot be read.
        """
        job = await self._stored(principal, job_id)
        ends = await self._ends(job)
        events = [(job.created_at, "queued")]
        for step in job.steps:
            events.append((step.started_at, f"{step.name}: begins"))
            if step.state != "started":
                events.append((ends.get(step.name, step.started_at), f"{step.name}: {_ending(step)}"))
        if job.ended_at is not None:
            info = await self._router.lookup.look_up(principal, job_id)
            events.append((job.ended_at, f"job ended: {_message(job, info) or 'ok'}"))
        return [f"{iso_time(at)} {text}" for at, text in sorted(events, key=lambda event: event[0])][-lines:]

    async def _stored(self, principal: Principal, job_id: str) -> StoredJob:
        found = await self._read(principal, job_id=job_id, limit=1)
        if not found:
            raise NotFoundError(f"You have no job {job_id[:100]!r}, or it is older than seven days.")
        return found[0]

    async def _ends(self, job: StoredJob) -> dict[str, float]:
        try:
            return await self._store.journal.step_ends(job)
        except StoreError as error:
            raise _unreadable(error) from error

    async def _read(
        self,
        principal: Principal,
        *,
        job_id: str | None = None,
        subject: str | None = None,
        outcomes: Collection[str] | None = None,
        limit: int,
    ) -> list[StoredJob]:
        try:
            return await self._store.journal.jobs(
                principal.name, _OPERATIONS, job_id=job_id, subject=subject, outcomes=outcomes, limit=limit
            )
        except StoreError as error:
            raise _unreadable(error) from error

    async def _shown(self, principal: Principal, job: StoredJob) -> dict[str, Any]:
        info = await self._router.lookup.look_up(principal, job.id)
        if job.unfinished and not info.is_unfinished:  # the job ended between the two reads
            job = await self._stored(principal, job.id)
        status = _status(job, info)
        phases = job.steps
        started = phases[0].started_at if phases else None
        ended = None if info.is_unfinished else job.ended_at
        value = None if info.result is None else info.result.value
        error = None if info.result is None or info.result.error is None else info.result.error
        details = {} if error is None else dict(error.details or {})
        return {
            "job_id": job.id,
            "status": status,
            "operation": _OPERATIONS[job.tool],
            "service_name": _subject(phases),
            "progress": _progress(status, info),
            "current_phase": None if not info.is_unfinished or not phases else phases[-1].name.partition(":")[0],
            "created_at": iso_time(job.created_at),
            "started_at": None if started is None else iso_time(started),
            "completed_at": None if ended is None else iso_time(ended),
            "duration": None if ended is None else round(ended - job.created_at, 3),
            "result": value if status == "completed" else None,
            "error": None if status in {"queued", "running", "completed"} else _message(job, info),
            "undone": details.get("undone"),
            "not_undone": details.get("not_undone"),
            "logs_url": f"/api/v1/jobs/{job.id}/logs",
        }


def _unreadable(error: StoreError) -> ServiceUnavailableError:
    return ServiceUnavailableError.content_free(
        f"The jobs cannot be read at present ({error.reason}); try again later."
    )


def _status(job: StoredJob, info: CallInfo) -> JobStatus:
    if info.is_unfinished:
        return "running" if job.steps else "queued"
    outcome = info.outcome or job.outcome
    if outcome == "ok":
        return "completed"
    return "cancelled" if outcome == "CANCELLED" else "failed"


def _subject(steps: Sequence[JobStep]) -> str | None:
    """The service's name, which the first phase has in its name."""
    first = steps[0].name.partition("#")[0] if steps else ""
    return first.removeprefix(f"{CHECK_PHASE}:") if first.startswith(f"{CHECK_PHASE}:") else None


def _progress(status: JobStatus, info: CallInfo) -> int | None:
    """In percent; None if unknown, because the job failed or waits."""
    if status == "completed":
        return 100
    if status == "queued":
        return 0
    reported = info.progress
    if reported is None or reported.done is None or not reported.total:
        return None
    return round(100 * reported.done / reported.total)


def _message(job: StoredJob, info: CallInfo) -> str | None:
    if info.result is not None and info.result.error is not None:
        return info.result.error.message
    return job.message or (None if job.outcome in {None, "ok"} else job.outcome)


def _ending(step: JobStep) -> str:
    if step.error is not None:
        return f"failed: {step.error}"
    match step.state:
        case "interrupted":
            return "interrupted; it is tried again"
        case "expired":
            return "ended; its result is no longer stored"
    return f"removed {removed}" if (removed := step.fields.get("removed")) else "done"


def iso_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
