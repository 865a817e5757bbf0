"""The state that deployments share: the records, the settings in use, the targets, and the jobs to cancel."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec
import structlog

from ..agent_registry import RegistrySettings
from ..protocol.error_codes import InvalidArgumentsError, OverCapacityError, ServiceUnavailableError
from ..tools import Agent, AgentDefinitionError, PromptSource, check_cycles, read_agent
from .deploy_phase import CHECK_PHASE, DeployPhase, DeployTarget
from .deploy_request import DeployPlan
from .deploy_settings import DeploySettings, TargetName
from .deployment_records import MAX_DEPLOYMENTS, Deployment, DeploymentRecords

_log = structlog.get_logger("toold.deploy")


class AgentHosting(Protocol):
    """The daemon's hosted agents."""

    def has_name(self, name: str) -> bool:
        """Whether an agent or another tool has this name now."""
        ...

    async def publish(self) -> None:
        """Host the agents that ``DeploymentService.agents`` now returns; returns once clients can call them."""
        ...

    def url_of(self, name: str) -> str:
        """The URL at which A2A clients find the agent."""
        ...


class DeploymentService:
    """The deployments of one daemon."""

    def __init__(
        self,
        settings: DeploySettings | None,
        records: DeploymentRecords,
        prompts: PromptSource,
        hosting: AgentHosting,
        *,
        registry: Callable[[], RegistrySettings | None],
    ) -> None:
        """``settings``: None if deployments are off. ``registry`` returns the registry of the settings."""
        self.settings = settings
        self.records = records
        self.prompts = prompts
        self.hosting = hosting
        self.registry = registry
        self.targets: dict[TargetName, DeployTarget] = {}
        """The configured targets; set by the wiring."""
        self.running: set[str] = set()
        """The ids of the running jobs."""
        self._cancelled: dict[str, asyncio.Event] = {}
        self._invalid: set[str] = set()
        for name in records.unreadable:
            _log.warning("record of a deployment cannot be read", file=name)

    def __repr__(self) -> str:
        return f"<DeploymentService {self.records!r} running={len(self.running)}>"

    def agents(self, configured: Mapping[str, Agent]) -> dict[str, Agent]:
        """The deployed agents to host, in addition to the ``configured`` agents, which take precedence."""
        hosted: dict[str, Agent] = {}
        for name, record in self.records.all.items():
            if not record.hosted or name in configured:
                continue
            try:
                agent = read_agent(name, record.agent)
                check_cycles({**configured, **hosted, name: agent})
            except AgentDefinitionError as error:
                if name not in self._invalid:
                    _log.warning("deployed agent is not hosted", service=name, reason=str(error))
                self._invalid.add(name)
            else:
                hosted[name] = agent
        return hosted

    # --- jobs --------------------------------------------------------------------------------------------------------

    def cancel(self, job_id: str) -> None:
        """Ask a job to end and to remove what it created."""
        self.cancelled(job_id).set()

    def cancelled(self, job_id: str) -> asyncio.Event:
        """An event that is set when the job should be cancelled."""
        return self._cancelled.setdefault(job_id, asyncio.Event())

    def ended(self, job_id: str) -> None:
        """Record that the job has ended, or the daemon is stopping."""
        self.running.discard(job_id)
        self._cancelled.pop(job_id, None)

    # --- records -----------------------------------------------------------------------------------------------------

    def refuse_taken(self, plan: DeployPlan) -> None:
        """
        Raises:
            InvalidArgumentsError: such a deployment, or a tool with its name, exists.
            OverCapacityError: there are too many deployments.
        """
        field = "agent_name" if plan.agent_name else "agent_id"
        name = plan.service_name
        if name in self.records.all:
            problem = f"is deployed already, as {name}; DELETE /api/v1/agents/{name} removes it"
        elif plan.target == "here" and self.hosting.has_name(name):
            problem = f"makes the name {name}, which another agent or tool has"
        elif len(self.records.all) >= MAX_DEPLOYMENTS:
            raise OverCapacityError.content_free(f"There are {MAX_DEPLOYMENTS} deployments; remove one first.")
        else:
            return
        raise InvalidArgumentsError(f"{field} {problem}.", details={"fields": {field: problem}, "exists": name})

    def reservation(self, plan: DeployPlan, job_id: str, principal: str) -> DeployPhase:
        """The first phase: the record that reserves the name."""

        async def make() -> Mapping[str, Any]:
            known = self.records.all.get(plan.service_name)
            if known is None or known.job_id != job_id:
                self.refuse_taken(plan)
                deployment = Deployment(plan=plan, principal=principal, job_id=job_id, created_at=time.time())
                await self._store(deployment)
            return {"plan": msgspec.to_builtins(plan)}

        async def remove() -> str | None:
            known = self.records.all.get(plan.service_name)
            if known is None or known.job_id != job_id:
                return None
            await self.forget(plan.service_name)
            return f"the name {plan.service_name}"

        return DeployPhase(CHECK_PHASE, make, remove)

    async def change(self, name: str, job_id: str, **changes: Any) -> Deployment | None:
        """Store changes of a job's deployment; returns it, or None if it was removed meanwhile.

        Raises:
            ServiceUnavailableError: the disk cannot be written.
        """
        known = self.records.all.get(name)
        if known is None or known.job_id != job_id:
            return None
        changed = msgspec.structs.replace(known, **changes)
        if changed != known:
            await self._store(changed)
        return changed

    async def forget(self, name: str) -> None:
        """Remove a record.

        Raises:
            ServiceUnavailableError: the disk cannot be written.
        """
        try:
            await asyncio.to_thread(self.records.remove, name)
        except OSError as error:
            raise _unwritable(error) from error

    async def _store(self, deployment: Deployment) -> None:
        try:
            await asyncio.to_thread(self.records.put, deployment)
        except OSError as error:
            raise _unwritable(error) from error


def _unwritable(error: OSError) -> ServiceUnavailableError:
    return ServiceUnavailableError.content_free(f"The record cannot be written ({error.strerror}).", executed="no")
