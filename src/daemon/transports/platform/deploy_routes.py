"""``/api/v1/agents`` and ``/api/v1/jobs``: deployments and their jobs."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

from ....deployment import DEPLOY_TOOL, UNDEPLOY_TOOL, Deployment, DeploymentService
from ....prompts import PromptListing
from ...observability.job_view import JOB_STATUSES, MAX_LISTED_JOBS, JobStatus, JobView, iso_time
from .platform_calls import PlatformCalls
from .platform_error import PlatformError, invalid_fields
from .platform_route import PlatformAnswer, PlatformRequest, PlatformRoute

MAX_LOG_LINES: Final = 1000
_DEFAULT_LINES: Final = 100
_DEFAULT_JOBS: Final = 20
_ENDED: Final = frozenset({"completed", "failed", "cancelled"})


def deploy_routes(
    service: DeploymentService, jobs: JobView, calls: PlatformCalls, prompts: Callable[[], Awaitable[PromptListing]]
) -> Sequence[PlatformRoute]:
    """The routes. ``prompts`` lists the prompts that deployments can name."""
    routes = _DeployRoutes(service, jobs, calls, prompts)
    return (
        PlatformRoute("POST", "/api/v1/agents/deploy", routes.deploy, takes_body=True),
        PlatformRoute("GET", "/api/v1/agents", routes.list_agents),
        PlatformRoute("GET", "/api/v1/agents/prompts", routes.list_prompts),
        PlatformRoute("GET", "/api/v1/agents/{service_name}", routes.show_agent),
        PlatformRoute("DELETE", "/api/v1/agents/{service_name}", routes.remove_agent),
        PlatformRoute("GET", "/api/v1/jobs", routes.list_jobs),
        PlatformRoute("GET", "/api/v1/jobs/{job_id}", routes.show_job),
        PlatformRoute("GET", "/api/v1/jobs/{job_id}/logs", routes.show_logs),
        PlatformRoute("POST", "/api/v1/jobs/{job_id}/cancel", routes.cancel_job),
    )


class _DeployRoutes:
    """Answers the requests: reads the records and jobs directly, and makes changes with the deployment tools."""

    def __init__(
        self,
        service: DeploymentService,
        jobs: JobView,
        calls: PlatformCalls,
        prompts: Callable[[], Awaitable[PromptListing]],
    ) -> None:
        self._service = service
        self._prompts = prompts
        self._jobs = jobs
        self._calls = calls

    async def deploy(self, request: PlatformRequest) -> PlatformAnswer:
        self._check(request)
        return _begun(await self._calls.run(request, DEPLOY_TOOL, request.body))

    async def list_agents(self, request: PlatformRequest) -> PlatformAnswer:
        self._check(request)
        _check_query(request.query, ())
        agents = [_shown(deployment) for deployment in self._service.records.all.values()]
        return PlatformAnswer({"agents": agents, "count": len(agents)})

    async def list_prompts(self, request: PlatformRequest) -> PlatformAnswer:
        self._check(request)
        _check_query(request.query, ())
        prompts, problems = await self._prompts()
        shown = [msgspec.to_builtins(prompt) for prompt in prompts]
        return PlatformAnswer({"prompts": shown, "count": len(shown), "problems": problems})

    async def show_agent(self, request: PlatformRequest) -> PlatformAnswer:
        self._check(request)
        return PlatformAnswer(_shown(self._find(request.path["service_name"])))

    async def remove_agent(self, request: PlatformRequest) -> PlatformAnswer:
        self._check(request)
        name = self._find(request.path["service_name"]).name
        return _begun(await self._calls.run(request, UNDEPLOY_TOOL, {"service_name": name}))

    async def list_jobs(self, request: PlatformRequest) -> PlatformAnswer:
        _check_query(request.query, ("service_name", "status", "limit"))
        limit = _number(request.query, "limit", _DEFAULT_JOBS, MAX_LISTED_JOBS)
        subject = request.query.get("service_name")
        jobs = await self._jobs.page(
            request.principal, subject=subject, status=_status(request.query.get("status")), limit=limit
        )
        return PlatformAnswer({"jobs": jobs, "count": len(jobs)})

    async def show_job(self, request: PlatformRequest) -> PlatformAnswer:
        return PlatformAnswer(await self._jobs.find(request.principal, request.path["job_id"]))

    async def show_logs(self, request: PlatformRequest) -> PlatformAnswer:
        _check_query(request.query, ("lines",))
        lines = _number(request.query, "lines", _DEFAULT_LINES, MAX_LOG_LINES)
        job_id = request.path["job_id"]
        return PlatformAnswer({"job_id": job_id, "logs": await self._jobs.logs(request.principal, job_id, lines)})

    async def cancel_job(self, request: PlatformRequest) -> PlatformAnswer:
        job = await self._jobs.find(request.principal, request.path["job_id"])
        if job["status"] in _ENDED:
            why = f"The job has ended ({job['status']}), so it cannot be cancelled."
            raise PlatformError(HTTPStatus.CONFLICT, why)
        if job["operation"] != "deploy":
            why = "A removal is not cancelled: what it has removed would not come back. Wait for its end."
            raise PlatformError(HTTPStatus.CONFLICT, why)
        self._service.cancel(job["job_id"])
        return PlatformAnswer({**job, "message": "The job is being cancelled; it removes what it has made."}, 202)

    def _check(self, request: PlatformRequest) -> None:
        if self._service.settings is None:
            why = "Deployments are off; the operator writes [deploy] in toold.toml."
            raise PlatformError(HTTPStatus.NOT_FOUND, why)
        if not request.principal.operator:
            why = "Deployments need the operator right: use the daemon's token, or one made with --operator."
            raise PlatformError(HTTPStatus.FORBIDDEN, why)

    def _find(self, name: str) -> Deployment:
        deployment = self._service.records.all.get(name)
        if deployment is None:
            raise PlatformError(HTTPStatus.NOT_FOUND, f"There is no deployment {name[:100]!r}; GET /api/v1/agents.")
        return deployment


def _begun(fields: Mapping[str, Any]) -> PlatformAnswer:
    job_id = fields["job_id"]
    body = {
        "job_id": job_id,
        "status": fields["status"],
        "service_name": fields["service_name"],
        "status_url": f"/api/v1/jobs/{job_id}",
        "logs_url": f"/api/v1/jobs/{job_id}/logs",
    }
    return PlatformAnswer(body, HTTPStatus.ACCEPTED)


def _shown(deployment: Deployment) -> dict[str, Any]:
    plan = deployment.plan
    fields: dict[str, Any] = msgspec.to_builtins(plan)
    fields |= {"status": deployment.state, "url": deployment.url, "job_id": deployment.job_id}
    return {**fields, "principal": deployment.principal, "created_at": iso_time(deployment.created_at)}


def _status(name: str | None) -> JobStatus | None:
    if name is None:
        return None
    for status in JOB_STATUSES:
        if name == status:
            return status
    raise invalid_fields({"status": f"is one of {', '.join(JOB_STATUSES)}"}, place="query")


def _number(query: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = query.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= most):
        raise invalid_fields({name: f"must be a number from 1 to {most}"}, place="query")
    return int(text)


def _check_query(query: Mapping[str, str], known: tuple[str, ...]) -> None:
    unknown = sorted(query.keys() - set(known))
    if unknown:
        served = f"there are {', '.join(known)}" if known else "this path takes none"
        raise invalid_fields({name[:100]: f"is not a parameter; {served}" for name in unknown}, place="query")
