"""The tools ``deploy_agent`` and ``undeploy_agent``, whose detached calls are the jobs."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from pydantic import Field

from ..protocol.error_codes import (
    InvalidArgumentsError,
    NotFoundError,
    PermissionDeniedError,
    RequestIdConflictError,
    ServiceUnavailableError,
    ToolExecutionError,
    error_from_wire,
)
from ..tools import Arguments, LookupContext, OrchestrationContext, Tool, tool
from .deploy_job import REMOVAL_S, DeployJob
from .deploy_phase import CHECK_PHASE, DeployPhase
from .deploy_request import DeployArguments, DeployPlan, plan_of
from .deploy_settings import DeploySettings
from .deployment_records import Deployment
from .deployment_service import DeploymentService

DEPLOY_TOOL: Final = "deploy_agent"
UNDEPLOY_TOOL: Final = "undeploy_agent"


class UndeployArguments(Arguments):
    """The deployment to remove."""

    service_name: Annotated[str, Field(min_length=1, max_length=100)]


def deploy_tools(service: DeploymentService) -> Sequence[Tool]:
    """The tools. None if deployments are off."""
    if service.settings is None:
        return ()

    @tool(DEPLOY_TOOL, read_only=False, open_world=True, destructive=True, orchestration=True)
    async def deploy_agent(arguments: DeployArguments, context: OrchestrationContext) -> dict[str, Any]:
        """Deploy an agent as a job, which continues after restarts: returns its `job_id` at once, for call_status and
        call_result. Either `agent_name` with `prompt_ref`, or `agent_id` of a registry. If a phase fails, everything
        that was created is removed. Needs the operator right.
        """
        settings = _settings(service)
        if context.detached:
            return await _deploy(service, settings, arguments, context)
        _check_right(context)
        plan = plan_of(arguments, settings, _registry_url(service))
        service.refuse_taken(plan)
        if plan.target == "here" and plan.default_model is not None:
            context.daemon.catalog.resolve(plan.default_model)
        call_id = await context.detach(changed={}, timeout_s=settings.timeout_s + REMOVAL_S)
        return _begun(call_id, plan.service_name)

    @tool(UNDEPLOY_TOOL, read_only=False, open_world=True, idempotent=True, destructive=True, orchestration=True)
    async def undeploy_agent(arguments: UndeployArguments, context: OrchestrationContext) -> dict[str, Any]:
        """Remove a deployed agent with everything that its deployment created, as a job: returns its `job_id` at once.
        Needs the operator right.
        """
        if context.detached:
            return await _undeploy(service, _settings(service), arguments.service_name, context)
        _check_right(context)
        _find(service, arguments.service_name)
        call_id = await context.detach(changed={}, timeout_s=REMOVAL_S)
        return _begun(call_id, arguments.service_name)

    return deploy_agent, undeploy_agent


def _begun(call_id: str, service_name: str) -> dict[str, Any]:
    return {"job_id": call_id, "call_id": call_id, "detached": True, "status": "queued", "service_name": service_name}


async def _deploy(
    service: DeploymentService, settings: DeploySettings, arguments: DeployArguments, context: OrchestrationContext
) -> dict[str, Any]:
    job_id = context.call_id
    known = next((each for each in service.records.all.values() if each.job_id == job_id), None)
    plan = plan_of(arguments, settings, _registry_url(service)) if known is None else known.plan

    def later(result: Mapping[str, Any]) -> tuple[Deployment, Sequence[DeployPhase]]:
        reserved = msgspec.convert(result["plan"], DeployPlan)
        deployment = Deployment(plan=reserved, principal=context.principal.name, job_id=job_id, created_at=0.0)
        return deployment, _phases(service, deployment)

    job = DeployJob(service, context, plan.service_name, settings.poll_s)
    service.running.add(job_id)
    try:
        return await job.deploy(service.reservation(plan, job_id, context.principal.name), later)
    finally:
        service.ended(job_id)


async def _undeploy(
    service: DeploymentService, settings: DeploySettings, name: str, context: OrchestrationContext
) -> dict[str, Any]:
    async def look(_arguments: UndeployArguments, _context: LookupContext) -> dict[str, Any]:
        return {"deployment": msgspec.to_builtins(_find(service, name))}

    # Journalled, because the record no longer exists if the job continues after the removal.
    looked = await context.call(
        _deployment_record.with_function(look), {"service_name": name}, name=f"{CHECK_PHASE}:{name}", journal=True
    )
    if looked.error is not None:
        raise error_from_wire(looked.error)
    fields = looked.structured if isinstance(looked.structured, dict) else {}
    deployment = msgspec.convert(fields["deployment"], Deployment)
    first = service.reservation(deployment.plan, deployment.job_id, deployment.principal)
    phases = [first, *_phases(service, deployment)]
    context.progress("undo", 0)
    job = DeployJob(service, context, name, settings.poll_s)
    try:
        removal = await job.remove(reversed(phases))
    finally:
        service.ended(context.call_id)
    if removal.not_undone:
        details = {"service_name": name, **removal.fields()}
        raise ToolExecutionError(
            f"{removal} The deployment was not removed completely.", executed="maybe", details=details
        )
    return {"service_name": name, "target": deployment.plan.target, "undone": list(removal.undone)}


@tool("deployment_record", read_only=True, open_world=False, idempotent=True, unmetered=True)
async def _deployment_record(_arguments: UndeployArguments, _context: LookupContext) -> None:
    """Reads the record of a deployment."""
    raise NotImplementedError  # each job replaces the function


def _phases(service: DeploymentService, deployment: Deployment) -> Sequence[DeployPhase]:
    target = service.targets.get(deployment.plan.target)
    if target is None:
        raise ServiceUnavailableError.content_free(
            f"The target {deployment.plan.target} is not configured; write [deploy.cloud_run] again.", executed="no"
        )
    return target.phases(deployment)


def _find(service: DeploymentService, name: str) -> Deployment:
    """
    Raises:
        NotFoundError: there is no such deployment.
        RequestIdConflictError: the deployment's job is running.
    """
    known = service.records.all.get(name)
    if known is None:
        raise NotFoundError(f"There is no deployment {name[:100]!r}; GET /api/v1/agents lists them.")
    if known.job_id in service.running:
        raise RequestIdConflictError(f"The job {known.job_id} is deploying {name}; cancel it, or wait for its end.")
    return known


def _settings(service: DeploymentService) -> DeploySettings:
    if service.settings is None:
        raise InvalidArgumentsError.content_free("Deployments are off; the operator writes [deploy] in toold.toml.")
    return service.settings


def _check_right(context: OrchestrationContext) -> None:
    if not context.principal.operator:
        raise PermissionDeniedError.content_free(
            "Deploying needs the operator right: use the daemon's token, or one made with --operator."
        )


def _registry_url(service: DeploymentService) -> str | None:
    registry = service.registry()
    return None if registry is None else registry.base
