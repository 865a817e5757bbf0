"""The target ``here``: this daemon hosts the agent."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from ..agent_registry import AbsentAgent, FailedFetch, FetchedAgent, RegistryClient, RegistrySettings, completed_record
from ..protocol.error_codes import InvalidArgumentsError, ServiceUnavailableError, ToolExecutionError
from ..tools import Agent, AgentDefinitionError, PromptError, PromptQuery, check_cycles, read_agent
from .deploy_phase import DeployPhase
from .deploy_request import DeployPlan
from .deployment_records import Deployment
from .deployment_service import DeploymentService


class HereTarget:
    """Implements ``DeployTarget`` with the daemon's hosted agents."""

    def __init__(self, service: DeploymentService) -> None:
        self._service = service

    def phases(self, deployment: Deployment) -> Sequence[DeployPhase]:
        return (
            DeployPhase("definition", lambda: self._define(deployment)),
            DeployPhase("prompt", lambda: self._find_prompts(deployment)),
            DeployPhase("host", lambda: self._host(deployment), lambda: self._end_hosting(deployment)),
            DeployPhase("url", lambda: self._finish(deployment)),
        )

    async def _define(self, deployment: Deployment) -> Mapping[str, Any]:
        plan = deployment.plan
        table = _table(plan) if plan.agent_id is None else await self._registered(plan)
        agent = await asyncio.to_thread(_checked, plan.service_name, table)
        await self._service.change(deployment.name, deployment.job_id, agent=table)
        return {"execution_type": agent.execution_type, "roles": [role.name for role in agent.roles]}

    async def _registered(self, plan: DeployPlan) -> dict[str, Any]:
        """The definition of a registry's agent."""
        agent_id = str(plan.agent_id)
        settings = self._service.registry()
        if settings is None or settings.base != plan.registry_url:
            settings = self._other_registry(plan)
        client = RegistryClient(settings)
        try:
            outcome = await client.fetch(agent_id, None)
        finally:
            await client.close()
        match outcome:
            case FetchedAgent():
                try:
                    return {**completed_record(outcome.record, settings), "url": ""}
                except AgentDefinitionError as error:
                    raise _invalid("agent_id", f"has an invalid definition: {error}") from error
            case AbsentAgent():
                raise _invalid("agent_id", "is not an agent of the registry")
            case FailedFetch():
                raise ServiceUnavailableError(f"The registry: {outcome.reason}.", executed="no")
        raise ToolExecutionError(
            "The registry answered that the agent is unchanged, although it was asked for the first time."
        )

    def _other_registry(self, plan: DeployPlan) -> RegistrySettings:
        """The settings of a registry that [deploy] allows. It is read without a key."""
        deploy = self._service.settings
        table: dict[str, Any] = {"url": plan.registry_url, "agents": [plan.agent_id], "allow_http": True}
        if deploy is not None:
            table |= {"allow_private": deploy.allow_private, "timeout_s": min(60.0, deploy.request_timeout_s)}
        return RegistrySettings.model_validate(table)

    async def _find_prompts(self, deployment: Deployment) -> Mapping[str, Any]:
        """Look up each prompt that the agent names, so that a wrong name fails now instead of at the first message."""
        record = self._service.records.all.get(deployment.name)
        if record is None or record.agent is None:
            return {}
        agent = await asyncio.to_thread(_checked, deployment.name, record.agent)
        sources = {}
        for role in agent.roles:
            query = PromptQuery(role.name, role.prompt, role.prompt_ref, role.prompt_tag, dict(role.metadata))
            try:
                sources[role.name] = (await self._service.prompts.resolve(query)).source
            except PromptError as error:
                raise _invalid("prompt_ref", f"has no prompt that can be used: {error}") from error
        return {"prompts": sources}

    async def _host(self, deployment: Deployment) -> Mapping[str, Any]:
        await self._service.change(deployment.name, deployment.job_id, hosted=True)
        await self._service.hosting.publish()
        if not self._service.hosting.has_name(deployment.name):
            raise ToolExecutionError(f"The agent {deployment.name} is not among the hosted agents; the log says why.")
        return {"agent": deployment.name}

    async def _end_hosting(self, deployment: Deployment) -> str | None:
        record = self._service.records.all.get(deployment.name)
        if record is None or record.job_id != deployment.job_id or not record.hosted:
            return None
        await self._service.change(deployment.name, deployment.job_id, hosted=False)
        await self._service.hosting.publish()
        return f"the agent {deployment.name}"

    async def _finish(self, deployment: Deployment) -> Mapping[str, Any]:
        url = self._service.hosting.url_of(deployment.name)
        await self._service.change(deployment.name, deployment.job_id, url=url, state="ready")
        return {"url": url}


def _table(plan: DeployPlan) -> dict[str, Any]:
    """The definition of an agent with a single prompt."""
    described = f"{plan.agent_name}, deployed for {plan.customer_id}."
    model = {} if plan.default_model is None else {"model": plan.default_model}
    return {"description": described, "prompt_ref": plan.prompt_ref, **model}


def _checked(name: str, table: dict[str, Any]) -> Agent:
    try:
        agent = read_agent(name, table)
        check_cycles({name: agent})
    except AgentDefinitionError as error:
        raise _invalid("agent_id", f"has an invalid definition: {error}") from error
    return agent


def _invalid(field: str, problem: str) -> InvalidArgumentsError:
    return InvalidArgumentsError(f"{field} {problem}.", details={"fields": {field: problem}})
