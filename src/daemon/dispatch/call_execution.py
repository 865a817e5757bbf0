"""Runs accepted calls, each in a separate task, and gives each exactly one answer.

before-hooks ▸ wait (rate limit, permits) ▸ start (journal) ▸ run ▸ after-hooks ▸ fit ▸ record ▸ deliver

The stages fit and record are in ``answer_preparation``.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Final

import structlog

from ...fairness import Permits
from ...protocol.error_codes import OutcomeUnknownError
from ...protocol.input_request import CallPausedError
from ...protocol.request_meta import current_request_meta
from ...protocol.tool_call import ToolResult
from ...protocol.trace_context import callers_traceparent, current_traceparent
from ...tools import OWN_SOURCE, ToolCatalog, is_long, meta_of
from ..observability.logging_setup import bind_call
from ..off_loop import off_loop
from . import call_outcome
from .answer_preparation import AnswerPreparation
from .call_cache import CallCache
from .call_context import ContextParts
from .call_deadlines import CallDeadlines
from .call_lookup import CallLookup
from .call_phase import CallPhase, EndReason, JournalRecord
from .child_calls import ChildCalls
from .client_questions import ClientQuestions
from .context_services import ContextServices
from .detached_calls import DetachedCalls
from .dispatch_limits import DispatchLimits
from .held_bytes import UNCOUNTED_BYTES, HeldBytes
from .hook_stage import HookStage
from .orchestration_call_context import context_of
from .pause_port import PausePort
from .paused_calls import PausedCalls
from .rate_limits import RateLimits
from .recording_ports import JournalPort, RecorderPort
from .running_call import RunningCall
from .session_manager import SessionManager
from .unanswered_calls import UnansweredCalls

_log = structlog.get_logger(__name__)

STUCK_S: Final = 1.0
"""How long a tool may take to return after its call was cancelled; then the daemon answers the call."""

# Constants for every call, because on Python 3.11 each access to an enum member is a Python call.
_QUEUED: Final = CallPhase.QUEUED
_RUNNING: Final = CallPhase.RUNNING
_ENDING: Final = CallPhase.ENDING
_ANSWERED: Final = CallPhase.ANSWERED
_OWN_RECORD: Final = JournalRecord.OWN
_PREVIOUS_CALL: Final = JournalRecord.PREVIOUS_CALL


class _AlreadyAnswered(Exception):  # noqa: N818 - not an error: the call already has its result
    def __init__(self, result: ToolResult) -> None:
        super().__init__()
        self.result = result


class CallExecution:
    """Runs accepted calls and tracks them until their answers are delivered."""

    def __init__(
        self,
        *,
        services: ContextServices,
        recorder: RecorderPort,
        journal: JournalPort,
        catalog: Callable[[], ToolCatalog],
        limits: Callable[[], DispatchLimits],
        permits: Permits,
        sessions: SessionManager,
        rate_limits: RateLimits,
        unread: HeldBytes,
        requests: HeldBytes,
        pauses: PausePort,
        next_id: Callable[[], str],
    ) -> None:
        self.unanswered = UnansweredCalls()
        """The calls from ``begin`` to their answers."""
        self._limits = limits
        self._unread = unread
        self._requests = requests
        self._services = services
        self._journal = journal
        self._catalog = catalog
        self._rate_limits = rate_limits
        self._sessions = sessions
        self._children = ChildCalls(
            runner=self,
            unanswered=self.unanswered,
            catalog=catalog,
            limits=limits,
            permits=permits,
            recorder=recorder,
            journal=journal,
            pauses=pauses,
            quotas=services.quotas,
            waiting=lambda: tuple(self.detached.waiting),
        )
        self.agent_budgets = self._children.agent_budgets
        self._hooks = HookStage(services.hooks, catalog, time.monotonic)
        self.cache = CallCache(services.credentials)
        self.detached = DetachedCalls(
            runner=self,
            unanswered=self.unanswered,
            sessions=sessions,
            journal=journal,
            catalog=catalog,
            limits=limits,
            permits=permits,
            requests=requests,
            next_id=next_id,
        )
        self.paused = PausedCalls(detached=self.detached, pauses=pauses, credentials=services.credentials)
        self.lookup = CallLookup(
            runner=self,
            unanswered=self.unanswered,
            detached=self.detached,
            paused=self.paused,
            sessions=sessions,
            journal=journal,
        )
        # Not the loop's clock, which uvloop updates once per millisecond.
        self._clock: Callable[[], float] = time.monotonic
        self._answers = AnswerPreparation(
            results=services.results,
            recorder=recorder,
            journal=journal,
            limits=limits,
            sessions=sessions,
            unread=unread,
            clock=self._clock,
        )
        # Cached, because looking up the running loop is a system call on Python 3.11.
        self._loop = asyncio.get_running_loop()
        expire = partial(self.end, reason=EndReason.DEADLINE)
        self._deadlines = CallDeadlines(self._loop, expire, max_timeout_s=lambda: limits().max_timeout_s)
        self.questions = ClientQuestions(timeout_s=lambda: limits().question_timeout_s, deadlines=self._deadlines)
        # Tasks that answer for stuck tools, referenced so that they are not collected.
        self._answer_tasks: set[asyncio.Task[None]] = set()
        self._context_parts = ContextParts(services, self._children, self.detached, self.lookup, self.questions)

    def __repr__(self) -> str:
        return f"<CallExecution calls={len(self.unanswered)}>"

    def begin(self, call: RunningCall) -> None:
        """Start an accepted call in the next iteration of the event loop."""
        self.unanswered.add(call)
        if call.request.frame_bytes > UNCOUNTED_BYTES:
            self._requests.add(call.session, call.request.frame_bytes)
        # Not `create_task`, which would first create a default name.
        call.task = asyncio.Task(self._run(call), loop=self._loop, name=call.id)
        self._deadlines.add(call)

    def end(self, call: RunningCall, reason: EndReason) -> None:
        """End a call, and its children, before its tool returns. Does nothing if it is ending or answered."""
        if call.end_reason is not None or call.answered:
            return
        unstarted = call.phase is CallPhase.ACCEPTED
        call.advance(CallPhase.ENDING if call.entered else CallPhase.CANCELLED)
        call.end_reason = reason
        call.end_requested_at = self._clock()
        self.questions.withdraw(call)
        for child in tuple(call.child_scope.active) if call.child_scope is not None else ():
            self.end(child, reason)
        if call.task is not None:
            call.task.cancel()
        if unstarted:  # asyncio never runs a task that is cancelled before its first step
            self.force_answer(call)

    def force_answer(self, call: RunningCall) -> None:
        """Answer a call whose task will not answer it in time."""
        if call.answered:
            return
        result = call_outcome.failed(call, call_outcome.cut_off(call), self._clock())
        answer = asyncio.create_task(self._answer(call, result))
        self._answer_tasks.add(answer)
        answer.add_done_callback(self._answer_tasks.discard)

    def answer_stuck_calls(self) -> None:
        """Answer all calls whose tools have not returned ``STUCK_S`` after they were cancelled; children first."""
        now = self._clock()
        for call in reversed(self.unanswered.all):
            if call.end_requested_at is not None and now > call.end_requested_at + STUCK_S:
                self.force_answer(call)

    async def _run(self, call: RunningCall) -> None:
        call.advance(_QUEUED)
        bind_call(call.session.label, call.request.request_id)
        hooked = self._services.hooks.active
        result = await (self._hooks.result(call, self._result) if hooked else self._result(call))
        await self._answer(call, result)

    async def _result(self, call: RunningCall) -> ToolResult:
        """Run the tool, and convert its return value or exception to a result."""
        try:
            if call.counts_at_nodes or call.tool.cache_s:
                await self._count_or_reuse(call)
            if call.tool.source != OWN_SOURCE and self._rate_limits.applies_to(call.tool.source):
                await self._rate_limits.acquire(call.tool.source, call.session.principal, call.deadline)
            if call.tool.unmetered or call.child_scope is not None:
                returned = await self._enter_without_permit(call)
            else:
                if not call.permit.enter_at_once():
                    await call.permit.enter()
                try:
                    call.meter.queue_s = self._clock() - call.started
                    if call.journalled or not call.tool.local:
                        await self._start(call)
                    returned = await self._enter(call)
                finally:
                    call.permit.leave()
            outputs, structured = call_outcome.plain_outputs(call, returned) or await call_outcome.outputs_of(
                call, returned, self._catalog
            )
            metadata = call_outcome.metadata_of(call, self._clock())
            result = ToolResult(metadata, outputs, structured, None, meta_of(returned), call.tool.typed)
            if call.mask is not None:  # in a thread: an answer may be long, and the mask searches all of it
                result = await asyncio.to_thread(call.mask.result, result)
            return result if call.cache_key is None else await self.cache.add(call, result)
        except _AlreadyAnswered as previous:
            call.long_result = is_long(previous.result.value)
            return previous.result
        except BaseException as error:  # noqa: BLE001 - a tool may raise anything, SystemExit included
            failure = call_outcome.of_exception(call, error)
        return call_outcome.failed(call, failure, self._clock())

    async def _count_or_reuse(self, call: RunningCall) -> None:
        """Count the call for quotas that all nodes share; then answer it from the cache if there is a result."""
        if call.counts_at_nodes:
            over = await self._services.quotas.take(call.tool.name, call.session.principal.name)
            if over is not None:
                raise over
        if call.tool.cache_s and (kept := await self.cache.find(call)) is not None:
            raise _AlreadyAnswered(kept)

    async def _enter_without_permit(self, call: RunningCall) -> object:
        """Run without a permit: a cheap tool, or an orchestration tool, whose children may need the permits."""
        if call.journalled or not call.tool.unmetered:
            await self._start(call)
        try:
            return await self._enter(call)
        except CallPausedError as paused:
            if call.end_reason is not None:
                raise call_outcome.cut_off(call) from paused
            result = await self.paused.pause(call, paused, self._limits())
        raise _AlreadyAnswered(result)

    async def _start(self, call: RunningCall) -> None:
        """Write the call's start to the journal (decision 17)."""
        earlier_run = call.journal_record is JournalRecord.EARLIER_RUN
        # Set before the write, which may succeed even if the wait for it is cancelled.
        call.journal_record, call.session.journalled = _OWN_RECORD, True
        if call.detached:
            return
        try:
            is_new = await self._journal.start_call(call, replace=earlier_run)
        except Exception:
            call.journal_record = JournalRecord.NONE
            raise
        if is_new:
            return
        if call.parent is not None:
            call.journal_record = JournalRecord.NONE
            raise OutcomeUnknownError
        call.journal_record = _PREVIOUS_CALL
        call.previous_answer = await self._sessions.previous_answer(call)
        raise _AlreadyAnswered(call.previous_answer.result)

    async def _enter(self, call: RunningCall) -> object:
        if self._answers.spilling.total:
            await self._answers.spilling.wait_until_fits(call.session, 0)
        call.advance(_RUNNING)
        entered_at = self._clock()
        if self._services.traces is not None:
            current_traceparent.set(str(self._services.traces.span_of(call)))
        # Only if it differs: a child call inherits the value, and setting a context variable takes much longer than
        # reading it.
        elif call.parent is None and callers_traceparent.get() is not call.request.traceparent:
            callers_traceparent.set(call.request.traceparent)
        if current_request_meta.get() is not call.request.meta:
            current_request_meta.set(call.request.meta)
        try:
            return await call.tool.run(call.arguments, context_of(call, self._context_parts))
        finally:
            call.meter.tool_s = self._clock() - entered_at
            for task in tuple(call.side_tasks or ()):
                task.cancel()
            if call.child_scope is not None:
                await self._children.close_scope(call, call.child_scope)

    async def _answer(self, call: RunningCall, result: ToolResult) -> None:
        """Render, fit, record and deliver the call's one answer. A second answer is dropped."""
        if call.phase is _ANSWERED:
            return
        started = call.phase is _RUNNING or call.phase is _ENDING
        call.advance(_ANSWERED)
        self._deadlines.remove(call)
        self.questions.withdraw(call)
        answer, unread = b"", 0
        try:
            try:
                render = self._answers.render
                answer, result = await off_loop(render, call, result) if call.long_result else render(call, result)
                if not started:
                    answer, result = await self._answers.record_unstarted(call, result, answer)
                # Shorter answers need no check, because no limit on answers is lower
                # (``setting_types.MIN_SPILL_BYTES``).
                if len(answer) > UNCOUNTED_BYTES and call.parent is None:
                    answer, result = await self._answers.fit(call, result, answer)
                    unread = len(answer)
                if started and not self._answers.recorded_at_once(call, result, answer):
                    await self._answers.record_in_journal(call, result, answer)
            finally:
                self._finish(call, result, len(answer), started=started)
            if unread:  # so that only the answer of a large call stays in memory while it waits for its reader
                del result
                call.drop_arguments()
            # A connection that took over the session before this point found the call running, and is now its port. A
            # connection that takes over later finds the call done, and gets the cached answer.
            if (sending := call.port.deliver(call, answer)) is not None:
                await sending
        finally:
            if unread:
                self._unread.remove(call.session, unread)
            if call.parent is None:
                call.session.calls.delivered()
                self.unanswered.delivered()
            call.task = None  # breaks the reference cycle

    def _finish(self, call: RunningCall, result: ToolResult, size: int, *, started: bool) -> None:
        if call.request.frame_bytes > UNCOUNTED_BYTES:
            self._requests.remove(call.session, call.request.frame_bytes)
        self.unanswered.remove(call)
        if call.parent is not None:
            return
        calls, previous = call.session.calls, call.previous_answer
        if previous is None and call.journal_record is _PREVIOUS_CALL:  # refused: the journal has the earlier call
            calls.finish_in_journal(call.key)
            return
        calls.finish(
            call.key,
            result,
            size,
            call.request.frame_bytes,
            self._clock() if previous is None else previous.ended_at,
            journalled=previous is not None or call.journal_record is _OWN_RECORD,
            started=started if previous is None else previous.started,
        )
