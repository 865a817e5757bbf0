"""A job: the phases of a deployment as child calls, and their removal if one fails or the job is cancelled.

The journal has each phase that ended, so a job that continues after a restart does not repeat it. A phase that was
interrupted, or failed for a temporary reason, is tried again under another name. It first checks what exists.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from ..protocol.error_codes import CallCancelledError, ErrorCode, ToolError, ToolExecutionError
from ..protocol.tool_call import ToolResult
from ..tools import Arguments, LookupContext, OrchestrationContext, Tool, tool
from .deploy_phase import DeployPhase
from .deployment_records import Deployment
from .deployment_service import DeploymentService

ATTEMPTS: Final = 4
"""The number of attempts of a phase, or of its removal, before it counts as failed."""
REMOVAL_S: Final = 600.0
"""The time of a job for removing what it created, in addition to the time for its phases."""

_CANCELLED: Final = "The job was cancelled."


class PhaseArguments(Arguments):
    """The phase, for the audit."""

    service_name: str
    phase: str


@tool("deploy_phase", read_only=False, open_world=True, idempotent=True, unmetered=True)
async def deploy_phase(_arguments: PhaseArguments, _context: LookupContext) -> None:
    """One phase of a deployment. Checks whether it is done, and does it if not."""
    raise NotImplementedError  # each job replaces the function


@tool("deploy_removal", read_only=False, open_world=True, idempotent=True, destructive=True, unmetered=True)
async def deploy_removal(_arguments: PhaseArguments, _context: LookupContext) -> None:
    """Removes what one phase of a deployment created, if it still exists."""
    raise NotImplementedError  # as above


class Removal(msgspec.Struct, frozen=True):
    """The outcome of removing a deployment."""

    undone: tuple[str, ...] = ()
    not_undone: tuple[str, ...] = ()
    """Descriptions of what may still exist, and why."""

    def fields(self) -> dict[str, Any]:
        return {"undone": list(self.undone), "not_undone": list(self.not_undone)}

    def __str__(self) -> str:
        undone = f"Undone: {', '.join(self.undone)}." if self.undone else "Nothing had to be undone."
        return undone + (f" Not undone: {'; '.join(self.not_undone)}." if self.not_undone else "")


class DeployJob:
    """One run of a job. ``context`` is the context of its detached call."""

    def __init__(self, service: DeploymentService, context: OrchestrationContext, name: str, poll_s: float) -> None:
        self._service = service
        self._context = context
        self._name = name
        self._poll_s = poll_s
        self._cancelled = service.cancelled(context.call_id)

    async def deploy(
        self, first: DeployPhase, later: Callable[[Mapping[str, Any]], tuple[Deployment, Sequence[DeployPhase]]]
    ) -> dict[str, Any]:
        """Run all phases; ``later`` returns the phases after the first from its result.

        Raises:
            CallCancelledError: the job was cancelled; ``details`` has what was undone.
            ToolExecutionError: a phase failed; ``details`` has what was undone.
        """
        self._context.progress(first.name, 0)
        result = await self._make(first, f"{first.name}:{self._name}")
        if result.error is not None:
            raise self._failure(first.name, result.error, await self.remove([first]))
        deployment, phases = later(_fields(result))
        facts: dict[str, Any] = {}
        begun = [first]
        for number, phase in enumerate(phases, 1):
            self._context.progress(phase.name, number, len(phases) + 1)
            begun.append(phase)
            result = await self._make(phase, phase.name)
            if result.error is not None:
                self._context.progress(f"undo after {phase.name}", number, len(phases) + 1)
                removal = await self.remove(reversed(begun))
                raise self._failure(phase.name, result.error, removal)
            facts |= _fields(result)
        plan = deployment.plan
        ignored = {"ignored": list(plan.ignored)} if plan.ignored else {}
        return {"service_name": self._name, "target": plan.target, **ignored, **facts}

    async def remove(self, phases: Iterable[DeployPhase]) -> Removal:
        """Remove what these phases created, in this order. The last one is the record, which stays if others failed."""
        undone: list[str] = []
        failed: list[str] = []
        *others, record = phases
        for phase in others:
            if phase.remove is not None:
                await self._remove(phase, undone, failed)
        if failed:
            await self._service.change(self._name, self._record_job(), state="incomplete", hosted=False)
        else:
            await self._remove(record, undone, failed)
        return Removal(tuple(undone), tuple(failed))

    def _record_job(self) -> str:
        known = self._service.records.all.get(self._name)
        return "" if known is None else known.job_id

    async def _remove(self, phase: DeployPhase, undone: list[str], failed: list[str]) -> None:
        if phase.remove is None:
            return
        remove = phase.remove

        async def run(_arguments: PhaseArguments, _context: LookupContext) -> dict[str, Any]:
            return {"removed": await remove()}

        result = await self._attempts(
            deploy_removal.with_function(run), phase, f"undo:{phase.name}", self._context.remaining
        )
        if result.error is not None:
            failed.append(f"{phase.name} ({result.error.message.rstrip('.')})")
        elif (removed := _fields(result).get("removed")) is not None:
            undone.append(str(removed))

    async def _make(self, phase: DeployPhase, child: str) -> ToolResult:
        async def run(_arguments: PhaseArguments, _context: LookupContext) -> dict[str, Any]:
            return dict(await self._unless_cancelled(phase.make))

        return await self._attempts(
            deploy_phase.with_function(run), phase, child, lambda: self._context.remaining() - REMOVAL_S
        )

    async def _unless_cancelled(self, make: Callable[[], Awaitable[Mapping[str, Any]]]) -> Mapping[str, Any]:
        """Run a phase and return its fields. A cancelled job interrupts it; the removal checks what exists."""
        if self._cancelled.is_set():
            raise CallCancelledError.content_free(_CANCELLED, executed="no")
        work = asyncio.ensure_future(make())
        stop = asyncio.ensure_future(self._cancelled.wait())
        try:
            await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            raise CallCancelledError.content_free(_CANCELLED, executed="maybe")
        finally:
            stop.cancel()
            if not work.done():
                work.cancel()
                await asyncio.wait({work})

    async def _attempts(self, called: Tool, phase: DeployPhase, child: str, left: Callable[[], float]) -> ToolResult:
        """The result of the first attempt that succeeds or fails permanently, or of the last attempt."""
        arguments = {"service_name": self._name, "phase": phase.name}
        attempt = 0
        while True:
            attempt += 1
            name = child if attempt == 1 else f"{child}#{attempt}"
            timeout_s = max(0.001, min(phase.timeout_s, left()))  # without time, it fails at once with TIMEOUT
            result = await self._context.call(called, arguments, name=name, timeout_s=timeout_s, journal=True)
            if attempt == ATTEMPTS or result.error is None or not _may_pass(result.error):
                return result
            if not result.metadata.replayed:
                await self._wait()

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._poll_s):
                await self._cancelled.wait()

    def _failure(self, phase: str, error: ToolError, removal: Removal) -> CallCancelledError | ToolExecutionError:
        details = {"service_name": self._name, "phase": phase, "code": error.code, **removal.fields()}
        if error.code == ErrorCode.CANCELLED:
            message = f"The job was cancelled in the phase {phase}. {removal}"
            return CallCancelledError(message, executed="maybe", transient=False, details=details)
        message = f"The phase {phase} failed: {error.message.rstrip('.')}. {removal}"
        return ToolExecutionError(message, executed="maybe" if removal.not_undone else "yes", details=details)


def _fields(result: ToolResult) -> dict[str, Any]:
    return result.structured if isinstance(result.structured, dict) else {}


def _may_pass(error: ToolError) -> bool:
    """Whether the same phase may succeed later. After ``OUTCOME_UNKNOWN``, the next attempt checks what exists."""
    return error.code != ErrorCode.CANCELLED and (error.retryable or error.code == ErrorCode.OUTCOME_UNKNOWN)
