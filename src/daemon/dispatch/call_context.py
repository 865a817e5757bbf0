"""The concrete contexts of tools: one running call as its tool sees it."""

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from ...protocol.error_codes import CallTimeoutError, ServiceUnavailableError
from ...protocol.tool_call import ClientInfo, Json, ModelUsage, Principal, Progress, ToolResult
from ...providers import Completion, CompletionRequest, Delta, OnDelta, Provider, ProviderAbilities, ProviderName
from ...sandbox import Sandbox
from ...tools import (
    CallInfo,
    Conversation,
    DaemonView,
    FileAccess,
    ResultFormat,
    RetainedResult,
    RetainedResults,
    Tool,
    ToolsetView,
    VendorOperation,
)
from . import completion_cost
from .budget import Budget
from .call_lookup import CallLookup
from .child_calls import ChildCalls
from .detached_calls import DetachedCalls
from .permits import RunPermit
from .provider_limiter import ProviderLimiter
from .running_call import MESSAGE_CHARS, ChildScope, RunningCall

T = TypeVar("T")


class Speaker(NamedTuple):
    """Who goes on with a conversation, and by which call."""

    principal: Principal
    session_id: str
    call_id: str


class ConversationAccess(Protocol):
    """The conversations that calls can go on with."""

    def hold(
        self, continuation_id: str | None, speaker: Speaker, permit: RunPermit, on_wait: Callable[[], None]
    ) -> AbstractAsyncContextManager[Conversation]:
        """``ToolContext.conversation``. Where it has to wait, ``on_wait`` is called and ``permit`` lent back."""
        ...


class ContextServices(msgspec.Struct, frozen=True, eq=False):
    """What is the same for every call."""

    daemon: DaemonView
    files: FileAccess
    gates: Mapping[str, ProviderLimiter]
    absent: Mapping[str, str]
    """Provider → what to set so that it can be asked."""
    conversations: ConversationAccess
    budgets_of: Callable[[Principal], Sequence[Budget]]
    """All that a completion for this principal has to fit into."""
    results: RetainedResults
    sandbox: Sandbox


class ProviderRequest:
    """A completion on its way: whether it was sent, and what was heard of its answer."""

    __slots__ = ("_on_delta", "_pieces", "_provider", "_request", "sent")

    def __init__(self, provider: Provider, request: CompletionRequest, on_delta: OnDelta | None) -> None:
        self._provider = provider
        self._request = request
        self._on_delta = on_delta
        self._pieces: list[str] = []
        self.sent = False

    @property
    def heard(self) -> str:
        """What streamed, reasoning included."""
        return "".join(self._pieces)

    async def __call__(self, *, timeout_s: float) -> Completion:
        self.sent = True
        on_delta = None if self._on_delta is None else partial(self._hear, self._on_delta)
        return await self._provider.complete(self._request, timeout_s=timeout_s, on_delta=on_delta)

    def _hear(self, on_delta: OnDelta, delta: Delta) -> None:
        self._pieces.append(delta.reasoning + delta.text)
        on_delta(delta)


class CallContext:
    """The context of one call. Satisfies ``tools.LookupContext``."""

    __slots__ = ("_children", "_known", "_running", "_services")

    def __init__(
        self, running: RunningCall, services: ContextServices, children: ChildCalls, known: CallLookup
    ) -> None:
        self._running = running
        self._services = services
        self._children = children
        self._known = known

    @property
    def daemon(self) -> DaemonView:
        return self._services.daemon

    @property
    def files(self) -> FileAccess:
        return self._services.files

    @property
    def call_id(self) -> str:
        return self._running.id

    @property
    def principal(self) -> Principal:
        return self._running.session.principal

    @property
    def client(self) -> ClientInfo:
        return self._running.session.client

    @property
    def streaming(self) -> bool:
        # Not with bound arguments: a value could come in two pieces, and neither would be known for part of it.
        return self._running.session.streaming and self._running.parent is None and self._running.tool.mask is None

    @property
    def has_explicit_timeout(self) -> bool:
        return self._running.call.timeout_ms is not None

    def remaining(self) -> float:
        return max(0.0, self._running.deadline - time.monotonic())

    def progress(self, message: str, done: float | None = None, total: float | None = None) -> None:
        mask = self._running.tool.mask
        message = _sendable(message) if mask is None else mask.text(_sendable(message))
        progress = Progress(message[:MESSAGE_CHARS], _finite(done), _finite(total))
        self._running.report(progress, time.monotonic())

    def stream(self, text: str) -> None:
        running = self._running
        text = _sendable(text)
        if text and self.streaming and not running.answered:
            running.last_report = time.monotonic()
            running.port.chunk(running, text)

    def without_permit(self) -> AbstractAsyncContextManager[None]:
        return self._running.permit.paused()

    def conversation(self, continuation_id: str | None) -> AbstractAsyncContextManager[Conversation]:
        running = self._running
        return self._services.conversations.hold(
            continuation_id,
            Speaker(running.session.principal, running.session.id, running.id),
            running.permit,
            lambda: self.progress("waiting for another call of the same conversation"),
        )

    async def complete(
        self, request: CompletionRequest, *, on_delta: OnDelta | None = None, chosen_because: str | None = None
    ) -> Completion:
        gate, meter = self._gate(request.model.provider), self._running.meter
        meter.model, meter.chosen_because = request.model.id, chosen_because
        budgets = self._services.budgets_of(self.principal)
        bounded = any(budget.amounts for budget in budgets) and not gate.provider.simulated
        reckoned = await asyncio.to_thread(completion_cost.reckoned, request) if bounded else None
        sending = ProviderRequest(gate.provider, request, on_delta)
        with ExitStack() as held:
            for budget in budgets:
                held.enter_context(budget.holding(reckoned))
            try:
                completion = await self._ask(gate, sending)
            except (asyncio.CancelledError, CallTimeoutError):
                if sending.sent:
                    self._book(completion_cost.cut_off(request, sending.heard, simulated=meter.simulated))
                raise
            meter.model = completion.model
            # Also where a simulator was given as the vendor's own address.
            meter.simulated = meter.simulated or completion.simulated
            self._book(completion_cost.answered(request, completion, simulated=meter.simulated))
        return completion

    def abilities(self, provider: ProviderName) -> ProviderAbilities:
        return self._gate(provider).provider

    async def vendor(self, provider: ProviderName, operation: VendorOperation[T]) -> T:
        gate = self._gate(provider)
        with ExitStack() as held:
            for budget in self._services.budgets_of(self.principal):
                held.enter_context(budget.holding(None))
            return await self._ask(gate, operation)

    def find_tool(self, name: str) -> Tool:
        return self._children.find_tool(self._running.session, name)

    @property
    def toolset_view(self) -> ToolsetView:
        return self._children.toolset_view(self._running.session)

    async def look_up_call(self, call_id: str) -> CallInfo:
        return await self._known.look_up(self.principal, call_id)

    def cancel_call(self, call_id: str) -> bool:
        return self._known.cancel(self.principal, call_id)

    async def read_result(self, handle: str) -> Json:
        return await self._services.results.read(self.principal, handle)

    @property
    def max_answer_bytes(self) -> int:
        return self._children.max_answer_bytes(self._running)

    def report_shaping(self, report: Mapping[str, Json]) -> None:
        self._running.shaping = dict(report)

    def _gate(self, provider: ProviderName) -> ProviderLimiter:
        gate = self._services.gates.get(provider)
        if gate is None:
            raise ServiceUnavailableError(self._services.absent[provider], transient=False)
        return gate

    async def _ask(self, gate: ProviderLimiter, operation: VendorOperation[T]) -> T:
        running, meter = self._running, self._running.meter
        meter.provider = gate.provider.name
        meter.simulated = meter.simulated or gate.provider.simulated
        self._note_stray()
        return await gate.ask(operation, deadline=running.deadline, permit=running.permit, meter=meter)

    def _note_stray(self) -> None:
        """Where a tool asks, or calls, in a task of its own, that task is to end with the call."""
        running, task = self._running, asyncio.current_task()
        if task is not None and task is not running.task:
            running.strays = running.strays or set()
            running.strays.add(task)
            task.add_done_callback(running.strays.discard)

    def _book(self, spent: ModelUsage) -> None:
        self._running.meter.book(spent)
        if spent.cost is not None:
            for budget in self._services.budgets_of(self.principal):
                budget.spend(spent.cost)


class OrchestrationCallContext(CallContext):
    """The context of one call of an orchestration tool. Satisfies ``tools.OrchestrationContext``."""

    __slots__ = ("_detached", "_scope")

    def __init__(
        self,
        running: RunningCall,
        scope: ChildScope,
        services: ContextServices,
        children: ChildCalls,
        detached: DetachedCalls,
        known: CallLookup,
    ) -> None:
        super().__init__(running, services, children, known)
        self._scope = scope
        self._detached = detached

    @property
    def sandbox(self) -> Sandbox:
        return self._services.sandbox

    async def call(
        self, tool: str, arguments: Mapping[str, Json], *, name: str, timeout_s: float | None = None
    ) -> ToolResult:
        self._note_stray()
        return await self._children.call(self._running, self._scope, tool, arguments, name, timeout_s)

    async def resume(self, call_id: str) -> None:
        await self._children.resume(self._running, self._scope, call_id)

    async def retain_result(
        self, value: Json, rows: list[Json] | None, file_format: ResultFormat, *, name: str | None = None
    ) -> RetainedResult:
        handle = self.call_id if name is None else f"{self.call_id}/{name}"
        return await self._services.results.keep(self.principal, handle, value, rows, file_format)

    @property
    def detached(self) -> bool:
        return self._running.detached

    async def detach(self, *, changed: Mapping[str, Json], timeout_s: float) -> str:
        return await self._detached.detach(self._running, changed, timeout_s)


def context_of(
    running: RunningCall,
    services: ContextServices,
    children: ChildCalls,
    detached: DetachedCalls,
    known: CallLookup,
) -> CallContext:
    """The context that the call's tool gets."""
    if running.family is None:
        return CallContext(running, services, children, known)
    return OrchestrationCallContext(running, running.family, services, children, detached, known)


def _sendable(text: str) -> str:
    """Half of a surrogate pair becomes a question mark: it is no Unicode text, and cannot be sent.

    Raises:
        TypeError: the tool reported something else than a string.
    """
    if not isinstance(text, str):
        raise TypeError(f"a report is a string, not {type(text).__name__}")
    return text if text.isascii() else text.encode(errors="replace").decode()


def _finite(number: float | None) -> float | None:
    """JSON has no infinities, and knows no other numbers than these."""
    return float(number) if isinstance(number, int | float) and math.isfinite(number) else None
