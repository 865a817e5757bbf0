"""The contexts of orchestration calls, which call other tools, resume, detach, and limit their spending."""

from collections.abc import Callable, Iterable, Mapping

from ...protocol.error_codes import InvalidArgumentsError, ToolNotFoundError
from ...protocol.input_request import InputDecision
from ...protocol.tool_call import Cost, Json, PartsOutcome, ToolResult
from ...protocol.user_credential import CredentialField, missing_credential
from ...providers import Model
from ...sandbox import Sandbox
from ...store import RunUsage
from ...tools import EarlierSteps, RateState, ResultFormat, RetainedResult, RunSpending, Tool
from .call_context import CallContext, ContextParts
from .call_phase import EndReason
from .child_calls import PLAIN, ChildOptions
from .run_budget import RunLimits
from .running_call import ChildScope, RunningCall


class OrchestrationCallContext(CallContext):
    """The context of an orchestration call. Implements ``tools.OrchestrationContext``."""

    __slots__ = ("_scope",)

    def __init__(self, call: RunningCall, scope: ChildScope, parts: ContextParts) -> None:
        super().__init__(call, parts)
        self._scope = scope

    @property
    def sandbox(self) -> Sandbox:
        return self._parts.services.sandbox

    async def call(
        self,
        tool: str | Tool,
        arguments: Mapping[str, Json],
        *,
        name: str,
        timeout_s: float | None = None,
        journal: bool = False,
        within: frozenset[str] | None = None,
        on_chunk: Callable[[str], None] | None = None,
    ) -> ToolResult:
        self._track_side_task()
        plain = not journal and within is None and on_chunk is None
        options = PLAIN if plain else ChildOptions(journal, within, on_chunk)
        return await self._parts.children.call(self._call, self._scope, tool, arguments, name, timeout_s, options)

    @property
    def resumed(self) -> bool:
        return self._scope.resumed

    @property
    def will_resume(self) -> bool:
        return self._call.resumes

    @property
    def cancel_requested(self) -> bool:
        return self._call.end_reason in {EndReason.CALLER, EndReason.OPERATOR}

    def decision(self, request_id: str) -> InputDecision | None:
        prefix, decisions = self._decisions()
        return decisions.get(f"{prefix}{request_id}")

    def _decisions(self) -> tuple[str, Mapping[str, InputDecision]]:
        """The prefix of the ids of this call's requests (its parents' names), and the decisions of the root call."""
        call, prefix = self._call, ""
        while call.parent is not None:
            prefix = f"{call.key}/{prefix}"
            call = call.parent
        return prefix, {} if call.child_scope is None else call.child_scope.decisions

    def needed_credentials(self, tool: str) -> tuple[CredentialField, ...]:
        try:
            return self.find_tool(tool).credentials
        except ToolNotFoundError:
            return ()

    async def missing_credential(self, wanted: CredentialField) -> str | None:
        credentials = self._parts.services.credentials
        if await credentials.value(self.principal.name, wanted) is not None:
            return None
        return missing_credential(wanted, credentials.page)

    async def earlier_steps(self) -> EarlierSteps:
        prefix, decisions = self._decisions()
        own = (name.removeprefix(prefix) for name in decisions if name.startswith(prefix))
        children = await self._parts.children.earlier_children(self._call, self._scope)
        return EarlierSteps(children, frozenset(name for name in own if "/" not in name))

    async def limit_spending(
        self,
        owner: str,
        *,
        amounts: Mapping[str, float] | None = None,
        max_tokens: int | None = None,
        daily: Mapping[str, float] | None = None,
        models: Iterable[Model] = (),
    ) -> RunSpending:
        limits = RunLimits(owner, amounts or {}, max_tokens)
        run, earlier = await self._parts.children.limit_spending(self._call, self._scope, limits, daily or {})
        run.restore((row.usage, self._list_cost(row)) for row in earlier)
        for model in models:
            run.check_price(model)
            for budget in run.daily:
                budget.require_price(model)
        return run

    def _list_cost(self, row: RunUsage) -> Cost | None:
        if not row.simulated:
            return row.usage.cost
        try:
            return self.daemon.catalog.resolve(row.usage.model).cost(row.usage.usage)
        except InvalidArgumentsError:  # the model has been removed since
            return None

    async def resume(self, call_id: str) -> None:
        await self._parts.children.resume(self._call, self._scope, call_id)

    async def retain_result(
        self, value: Json, rows: list[Json] | None, file_format: ResultFormat, *, name: str | None = None
    ) -> RetainedResult:
        handle = self.call_id if name is None else f"{self.call_id}/{name}"
        return await self._parts.services.results.keep(self.principal, handle, value, rows, file_format)

    async def rate_state(self, tool: Tool) -> RateState | None:
        return await self._parts.services.rate_limits.state(tool.source, self.principal)

    def report_parts(self, parts: PartsOutcome) -> None:
        self._scope.parts = parts

    @property
    def detached(self) -> bool:
        return self._call.detached

    async def detach(self, *, changed: Mapping[str, Json], timeout_s: float) -> str:
        return await self._parts.detached.detach(self._call, changed, timeout_s)


def context_of(call: RunningCall, parts: ContextParts) -> CallContext:
    """The context for the call's tool."""
    if call.child_scope is None:
        return CallContext(call, parts)
    return OrchestrationCallContext(call, call.child_scope, parts)
