"""Child calls: the calls that orchestration tools make (decision 33).

    resolve ▸ bind ▸ replay ▸ admit, then ``call_execution``

A child passes the same stages as every call, but its request is not a frame, and its answer goes to its parent.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from msgspec.structs import replace

from ...audit import error_summary
from ...fairness import Permits
from ...protocol.arguments_digest import is_digest_of
from ...protocol.error_codes import (
    CallError,
    NotFoundError,
    RequestIdConflictError,
)
from ...protocol.tool_call import (
    Json,
    Progress,
    ToolCall,
    ToolResult,
    encode_result,
)
from ...store import RunUsage, StoredCall
from ...tools import CHILD_NAME, Tool, ToolCatalog, ToolsetView
from . import call_outcome
from .admission import child_refusal, timeout_s_of
from .agent_budgets import AgentBudgets
from .call_creation import make_call
from .call_phase import EndReason, JournalRecord
from .call_quotas import CallQuotas
from .child_call_replay import earlier_result
from .dispatch_limits import DispatchLimits
from .nesting import nesting_refusal
from .pause_port import PausePort
from .recording_ports import JournalPort, RecorderPort
from .refused_child import refused_child
from .run_budget import RunBudget, RunLimits
from .running_call import MESSAGE_CHARS, ChildScope, DisconnectedPort, RunningCall
from .unanswered_calls import UnansweredCalls

_SHOWN_ID_CHARS: Final = 80


class CallRunner(Protocol):
    """The part of ``CallExecution`` that runs and ends calls."""

    def begin(self, call: RunningCall) -> None: ...

    def end(self, call: RunningCall, reason: EndReason) -> None: ...


class ChildOptions(NamedTuple):
    """The options of ``OrchestrationContext.call``."""

    journal: bool = False
    within: frozenset[str] | None = None
    on_chunk: Callable[[str], None] | None = None


PLAIN: Final = ChildOptions()


class ParentPort(DisconnectedPort):
    """The ``CallPort`` of a child: its parent waits for the answer and reports the child's progress as its own.

    It drops pieces, which are not part of the parent's answer, and heartbeats, because the parent has its own.
    Questions are passed to the client's call.
    """

    __slots__ = ("_parent", "_result", "answer")

    def __init__(self, parent: RunningCall) -> None:
        self._parent = parent
        self._result: ToolResult | None = None
        self.answer: asyncio.Future[ToolResult] = asyncio.get_running_loop().create_future()

    def render(self, call: RunningCall, result: ToolResult) -> bytes:
        """The result as the journal stores it; empty for a call that is not journalled: the parent needs no JSON."""
        self._result = result
        return encode_result(result) if call.journal_record is JournalRecord.OWN else b""

    async def deliver(self, call: RunningCall, answer: bytes) -> None:  # noqa: ARG002 - the result is delivered
        if self._result is not None:
            self.answer.set_result(self._result)

    def progress(self, call: RunningCall, progress: Progress) -> bool:
        message = f"{call.key}: {progress.message}"[:MESSAGE_CHARS]
        return self._parent.report(replace(progress, message=message), time.monotonic())

    def chunk(self, call: RunningCall, text: str) -> None:
        """Drops the chunk, which is not part of the parent's answer, unless the parent requested it."""
        if call.on_chunk is not None:
            call.on_chunk(text)


class ChildCalls:
    """Makes and runs child calls. ``waiting`` returns the ids of detached calls that are not resumed yet."""

    def __init__(
        self,
        *,
        runner: CallRunner,
        unanswered: UnansweredCalls,
        catalog: Callable[[], ToolCatalog],
        limits: Callable[[], DispatchLimits],
        permits: Permits,
        recorder: RecorderPort,
        journal: JournalPort,
        pauses: PausePort,
        quotas: CallQuotas,
        waiting: Callable[[], Iterable[str]],
    ) -> None:
        self._waiting = waiting
        self._pauses = pauses
        self._quotas = quotas
        self._catalog = catalog
        self._runner = runner
        self._unanswered = unanswered
        self._limits = limits
        self._permits = permits
        self._recorder = recorder
        self._journal = journal
        self.agent_budgets = AgentBudgets(journal)

    def find_tool(self, call: RunningCall, name: str) -> Tool:
        """Implements ``LookupContext.find_tool``."""
        session = call.session
        if call.within is not None:
            return self._catalog().find_tool_within(session.toolset, name, call.within)
        return self._catalog().find_tool(session.toolset, name, usable=session.usable)

    @property
    def strict_arguments(self) -> bool:
        return self._catalog().strict_arguments

    def toolset_view(self, call: RunningCall) -> ToolsetView:
        """Implements ``LookupContext.toolset_view``."""
        if call.within is not None:
            return self._catalog().narrowed_view(call.session.toolset, call.within)
        return self._catalog().view(call.session.toolset)

    async def call(
        self,
        parent: RunningCall,
        scope: ChildScope,
        tool: str | Tool,
        arguments: Mapping[str, Json],
        name: str,
        timeout_s: float | None,
        options: ChildOptions,
    ) -> ToolResult:
        """Implements ``OrchestrationContext.call``."""
        if scope.suspended:
            await asyncio.get_running_loop().create_future()  # waits until the parent is cancelled
        _add_name(parent, scope, name)
        received = time.monotonic()
        tool_name = tool if isinstance(tool, str) else tool.name
        request = ToolCall(name, tool_name, dict(arguments), None if timeout_s is None else timeout_s * 1000)
        port = ParentPort(parent)
        try:
            child = self._admit(parent, scope, request, tool, port, received)
        except CallError as error:
            if not options.journal:
                return self._refuse(parent, request, error, received)
            stored = await self._result_without_tool(parent, scope, request) if scope.resumed else None
            return stored or await self._run(
                refused_child(_child_id(parent, name), request, error, port, self._permits, parent), port
            )
        if options is not PLAIN:
            child.journalled, child.on_chunk = options.journal, options.on_chunk
            if options.within is not None:
                child.within = options.within if parent.within is None else parent.within & options.within
        try:
            looked_up = scope.resumed and (child.journalled or not child.tool.local)
            earlier = await self._earlier_result(child) if looked_up else None
        except CallError as error:
            return call_outcome.replayed(self._refuse(parent, request, error, received))
        if earlier is not None:
            return earlier
        # Except the agent's internal calls, such as model turns.
        if self._quotas.active and self._catalog().registry.has(child.tool):
            over = await self._quotas.take(child.tool.name, parent.session.principal.name)
            if over is not None:
                return self._refuse(parent, request, over, received)
        return await self._run(child, port)

    async def _run(self, child: RunningCall, port: ParentPort) -> ToolResult:
        self._runner.begin(child)
        try:
            result = await asyncio.shield(port.answer)
        except asyncio.CancelledError:
            self._runner.end(child, EndReason.PARENT)
            await asyncio.wait([port.answer])  # ends even if the child's tool does not return
            raise
        if child.paused is not None:
            raise child.paused.of_child(child.key)
        return result

    async def limit_spending(
        self, call: RunningCall, scope: ChildScope, limits: RunLimits, daily: Mapping[str, float]
    ) -> tuple[RunBudget, list[RunUsage]]:
        """Create the budget of a call and its children. Returns the budget, and the usage that the run already has."""
        if call.run_budget is not (None if call.parent is None else call.parent.run_budget):
            raise RuntimeError("a call can limit its spending once")
        day_budget = await self.agent_budgets.of(limits.owner, daily) if daily else None
        earlier = await self._journal.usage_of_run(scope.run, call.session.principal) if scope.resumed else []
        call.run_budget = RunBudget(limits, call.run_budget, day_budget)
        return call.run_budget, earlier

    async def earlier_children(self, call: RunningCall, scope: ChildScope) -> Mapping[str, tuple[str, bytes]]:
        """The calls of an earlier run of this call, by name: the tool and the digest of the arguments."""
        return await self._journal.children_of_run(scope.run, call.session.principal) if scope.resumed else {}

    def max_answer_bytes(self, call: RunningCall) -> int:
        """``LookupContext.max_answer_bytes``; a child's answer is not sent, so its size is not limited."""
        return self._limits().answer_bytes if call.parent is None else sys.maxsize

    async def close_scope(self, parent: RunningCall, scope: ChildScope) -> None:
        """After the parent's tool has returned: end its running children and wait for their answers."""
        scope.closed = True
        active = tuple(scope.active)
        for child in active:
            self._runner.end(child, parent.end_reason or EndReason.PARENT)
        answers = [child.port.answer for child in active if isinstance(child.port, ParentPort)]
        if answers:
            await asyncio.wait(answers)

    async def resume(self, parent: RunningCall, scope: ChildScope, call_id: str) -> None:
        """Implements ``OrchestrationContext.resume``."""
        if scope.names:
            raise RuntimeError("a call can resume another one only before its first child call")
        run = await self._journal.find_run(call_id, parent.session.principal, parent.tool.name)
        if run is None:
            raise NotFoundError(
                f"No earlier {parent.tool.name} call {call_id[:_SHOWN_ID_CHARS]!r} was found: it has expired, never "
                "existed or belongs to another principal. Omit the id to start a new run."
            )
        for waiting in self._waiting():
            if run in (waiting, await self._journal.find_run(waiting, parent.session.principal, parent.tool.name)):
                raise RequestIdConflictError(
                    f"The detached call {waiting} continues this run when its tools are loaded; wait for its answer."
                )
        for other in self._unanswered.all:
            if other is not parent and other.child_scope is not None and other.child_scope.run == run:
                raise RequestIdConflictError(
                    f"The call {other.id} is still working on this run; wait for its answer or cancel it, then resume."
                )
        paused = await self._pauses.paused_on(run)
        if paused is not None:
            raise RequestIdConflictError(
                f"The call {paused} continues this run, and is paused; decide with agent_decide, or cancel it, then "
                "resume."
            )
        scope.run, scope.resumed = run, True  # before the next await, so that no other call also resumes it
        await self._journal.resume_run(parent, run)

    def _admit(
        self,
        parent: RunningCall,
        scope: ChildScope,
        request: ToolCall,
        called: str | Tool,
        port: ParentPort,
        received: float,
    ) -> RunningCall:
        """The child, ready to run.

        Raises:
            CallError: it is refused.
        """
        session, limits = parent.session, self._limits()
        hidden = isinstance(called, Tool) and not self._catalog().registry.has(called)
        tool = called if isinstance(called, Tool) and hidden else self.find_tool(parent, request.name)
        max_children = sys.maxsize if parent.detached else limits.max_children
        refusal = child_refusal(len(scope.names), max_children=max_children)
        nesting = scope.nesting.below(tool, hidden=hidden)
        if refusal is None and nesting is not scope.nesting:
            refusal = nesting_refusal(nesting, max_depth=limits.max_depth, max_agent_depth=limits.max_agent_depth)
        if refusal is not None:
            raise refusal
        arguments = self._catalog().bind(tool, request.arguments)
        name = str(request.request_id)
        timeout_s, lowered = timeout_s_of(
            request.timeout_ms, tool.timeout_s or limits.default_timeout_s, limits.max_timeout_s
        )
        return make_call(
            call_id=_child_id(parent, name),
            key=name,
            session=session,
            request=request,
            tool=tool,
            arguments=arguments,
            port=port,
            permits=self._permits,
            started=received,
            deadline=min(parent.deadline, received + timeout_s),
            timeout_lowered=lowered,
            parent=parent,
            nesting=nesting,
        )

    async def _earlier_result(self, child: RunningCall) -> ToolResult | None:
        """This child's result from the resumed run; None if it must run.

        Raises:
            CallError: it must not run, and has no stored result.
        """
        stored = await self._journal.earlier_child(child)
        if stored is None:
            return None
        child.journal_record = JournalRecord.EARLIER_RUN
        result = await call_outcome.load_result(stored)
        arguments = child.request.arguments
        return earlier_result(stored, result, child.tool, arguments, journalled=child.journalled)

    async def _result_without_tool(
        self, parent: RunningCall, scope: ChildScope, request: ToolCall
    ) -> ToolResult | None:
        """The stored result of a journalled child that cannot run now, because its tool was removed or changed."""
        name = str(request.request_id)
        principal = parent.session.principal
        try:
            stored = await self._journal.find_ended_call(_child_id(parent, name), (scope.run, name), principal)
        except CallError:
            return None
        if not isinstance(stored, StoredCall) or stored.tool != request.name:
            return None
        result = await call_outcome.load_result(stored)
        same = is_digest_of(stored.arguments_hash, request.arguments)
        return call_outcome.replayed(result) if result is not None and (same or not result.ok) else None

    def _refuse(self, parent: RunningCall, request: ToolCall, error: CallError, received: float) -> ToolResult:
        result = call_outcome.refused(error, received)
        call_id = _child_id(parent, str(request.request_id))
        self._recorder.call_refused(
            parent.session, request, result, call_id=call_id, summary=error_summary(error), parent=parent
        )
        return result


def _child_id(parent: RunningCall, name: str) -> str:
    suffix = parent.child_scope.id_suffix if parent.child_scope else ""
    return f"{parent.id}/{name}{suffix}"


def _add_name(parent: RunningCall, scope: ChildScope, name: str) -> None:
    """Add the name of a new child.

    Raises:
        asyncio.CancelledError: the parent is ending.
        ValueError: the name is invalid or taken.
    """
    if parent.end_reason is not None or scope.closed:
        raise asyncio.CancelledError
    if not CHILD_NAME.fullmatch(name) or name in scope.names:
        raise ValueError(
            f"{name!r} cannot be a child's name: it was used before, or does not match {CHILD_NAME.pattern}"
        )
    scope.names.add(name)
