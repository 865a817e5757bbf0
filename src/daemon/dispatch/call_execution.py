"""The calls under way: each runs in a task of its own and gets exactly one terminal answer, whatever its tool does.

admit (rate, permits) ▸ start (journal) ▸ run ▸ fit the result ▸ record ▸ deliver
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import structlog

from ...protocol.error_codes import CallError, OutcomeUnknownError
from ...protocol.tool_call import ToolResult
from ...tools import ToolCatalog, content
from ..observability.logging_setup import bind_call
from . import call_outcome
from .call_context import ContextServices, context_of
from .call_lookup import CallLookup
from .child_calls import ChildCalls
from .detached_calls import DetachedCalls
from .dispatch_limits import DispatchLimits
from .permits import Permits
from .rate_limits import RateLimits
from .recording_ports import JournalPort, RecorderPort
from .result_spill import spilled, why_not
from .running_call import CallPort, EndReason, RunningCall, Session
from .session_manager import SessionManager

_log = structlog.get_logger(__name__)

STUCK_S: Final = 1.0
"""A tool that has not ended this long after it was told to is answered for."""

_SURELY_SENT: Final = 4096
"""No bound on answers is lower (``setting_types.MIN_SPILL_BYTES``): for short ones it need not be looked up."""


class _AlreadyAnswered(Exception):  # noqa: N818 - no error: the call has its result already
    def __init__(self, result: ToolResult) -> None:
        super().__init__()
        self.result = result


class CallExecution:
    """Runs accepted calls, and holds them until their answers are on their way no more."""

    def __init__(
        self,
        services: ContextServices,
        recorder: RecorderPort,
        journal: JournalPort,
        *,
        offer: Callable[[], ToolCatalog],
        bounds: Callable[[], DispatchLimits],
        permits: Permits,
        sessions: SessionManager,
        rates: RateLimits,
        next_id: Callable[[], str],
    ) -> None:
        self._services = services
        self._recorder = recorder
        self._journal = journal
        self._bounds = bounds
        self._rates = rates
        self._sessions = sessions
        self._children = ChildCalls(self, offer, bounds, permits, recorder, journal)
        self.detached = DetachedCalls(
            self, sessions, journal, offer=offer, bounds=bounds, permits=permits, next_id=next_id
        )
        self._known = CallLookup(self, self.detached, sessions, journal)
        # The same clock as the loop's, which uvloop reads to the millisecond only.
        # Held, since asking for the running loop costs a system call on Python 3.11.
        self._loop = asyncio.get_running_loop()
        self._clock: Callable[[], float] = time.monotonic
        # Accepted calls that their sessions' books have as running.
        self._calls: dict[tuple[str, str], RunningCall] = {}
        # Of these, those that make calls.
        self._orchestrations: set[RunningCall] = set()
        # What those make, in the order in which it came; no session's book has it.
        self._made: dict[RunningCall, None] = {}
        # Answers that their callers have not taken yet. Their ids may be in use again.
        self._undelivered = 0
        # Answers for tools that do not end; held so that they are not collected.
        self._answers: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def __repr__(self) -> str:
        return f"<CallExecution calls={len(self)}>"

    def __len__(self) -> int:
        """Calls whose answer is not sent yet."""
        return len(self._calls) + self._undelivered

    @property
    def wanting(self) -> int:
        """Accepted calls that hold, or wait for, a run permit; children do not count."""
        return len(self._calls) - len(self._orchestrations)

    @property
    def held_by_children(self) -> int:
        """Run permits that they hold."""
        return sum(child.permit.held for child in self._made)

    @property
    def running(self) -> list[RunningCall]:
        """The calls that have no answer yet: the callers' own, the oldest first, then what those make."""
        return [running for running in (*self._calls.values(), *self._made) if not running.answered]

    def orchestrations_in(self, session: Session) -> int:
        """How many of a session's calls make calls; what they make does not count."""
        return sum(running.session is session for running in self._orchestrations)

    def find(self, session: Session, key: str) -> RunningCall | None:
        """A session's call that has no answer yet."""
        running = self._calls.get((session.id, key))
        return None if running is None or running.answered else running

    def of(self, session: Session) -> list[RunningCall]:
        """A session's calls that have no answer yet, or are about to be told it."""
        calls = (self._calls.get((session.id, key)) for key in session.calls.running)
        return [running for running in calls if running is not None]

    def by_port(self) -> Mapping[CallPort, Sequence[RunningCall]]:
        """The calls that have no answer yet, by who waits for them."""
        ports: dict[CallPort, list[RunningCall]] = {}
        for running in self._calls.values():
            if not running.answered:
                ports.setdefault(running.port, []).append(running)
        return ports

    def begin(self, running: RunningCall) -> None:
        """Let an accepted call run, from the next turn of the loop on."""
        kin = None if running.parent is None else running.parent.family
        if kin is not None:
            kin.running.add(running)
            self._made[running] = None
        else:
            self._calls[running.session.id, running.key] = running
            if running.family is not None:
                self._orchestrations.add(running)
        self._idle.clear()
        running.task = self._loop.create_task(self._travel(running))
        running.timer = self._loop.call_at(running.deadline, self.end, running, EndReason.DEADLINE)

    def end(self, running: RunningCall, ended_by: EndReason) -> None:
        """End a call before its tool does. Does nothing where it has its answer or was told to end before."""
        if running.ended_by is not None or running.answered:
            return
        running.ended_by = ended_by
        running.ended_at = self._clock()  # from here on the beat's watch answers for it
        for child in tuple(running.family.running) if running.family is not None else ():
            self.end(child, ended_by)
        if running.task is not None:
            running.task.cancel()
        if not running.begun:  # a task that is cancelled before its first step never takes it
            self.answer_for(running)

    def answer_for(self, running: RunningCall) -> None:
        """Answer a call whose task will not do it, or not in time."""
        if running.answered:
            return
        result = call_outcome.failed(running, call_outcome.cut_off(running), self._clock())
        answer = asyncio.create_task(self._answer(running, result))
        self._answers.add(answer)
        answer.add_done_callback(self._answers.discard)

    def answer_for_the_stuck(self) -> None:
        """Answer all calls whose tools were told to end and have not; a call's children before it."""
        now = self._clock()
        for running in reversed(self.running):
            if running.ended_at is not None and now > running.ended_at + STUCK_S:
                self.answer_for(running)

    async def idle(self, timeout_s: float) -> None:
        """Wait until all calls are answered, for so long at most; not for readers that do not take their answers."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()

    async def _travel(self, running: RunningCall) -> None:
        running.begun = True
        bind_call(running.session.label, running.call.request_id)
        result = await self._outcome(running)
        await self._answer(running, result)

    async def _outcome(self, running: RunningCall) -> ToolResult:
        """Run the tool. Whatever it does becomes a result."""
        try:
            if self._rates.bounds(running.tool.source):
                await self._rates.take(running.tool.source, running.session.principal, running.deadline)
            if running.tool.unmetered:
                returned = await self._enter(running)
            elif running.family is not None:  # its calls may have to wait for the permit that it held
                await self._start(running)
                returned = await self._enter(running)
            else:
                async with running.permit:
                    running.meter.queue_s = self._clock() - running.started
                    if not running.tool.local:
                        await self._start(running)
                    returned = await self._enter(running)
            outputs, structured = content(returned, tool=running.tool.name)
            result = ToolResult(call_outcome.metadata_of(running, self._clock()), outputs, structured)
            # In a thread: an answer may be long, and all of it is looked at.
            return result if running.tool.mask is None else await asyncio.to_thread(running.tool.mask.result, result)
        except _AlreadyAnswered as before:
            return before.result
        except BaseException as error:  # noqa: BLE001 - a tool may raise anything, SystemExit included, and harms nobody
            failure = call_outcome.of_exception(running, error)
        return call_outcome.failed(running, failure, self._clock())

    async def _start(self, running: RunningCall) -> None:
        """Have it on the disk that the call starts (decision 17)."""
        # Also where the wait is cut off: it may have been written.
        running.journalled = running.session.journalled = True
        if running.detached:
            return
        try:
            new = await self._journal.start(running)
        except Exception:
            running.journalled = False
            raise
        if not new:
            running.journalled = False
            if running.parent is not None:
                raise OutcomeUnknownError
            running.repeated = True
            result, running.ended_before = await self._sessions.answered_before(running)
            raise _AlreadyAnswered(result)

    async def _enter(self, running: RunningCall) -> object:
        running.running = True
        entered = self._clock()
        try:
            context = context_of(running, self._services, self._children, self.detached, self._known)
            return await running.tool.run(running.arguments, context)
        finally:
            running.meter.tool_s = self._clock() - entered
            for stray in tuple(running.strays or ()):
                stray.cancel()
            if running.family is not None:
                await self._children.over(running, running.family)

    async def _answer(self, running: RunningCall, result: ToolResult) -> None:
        """Fit, record and send the one terminal answer. What comes second is dropped."""
        if running.answered:
            return
        running.answered = True
        if running.timer is not None:
            running.timer.cancel()
        try:
            size = 0
            try:
                answer, result = self._rendered(running, result)
                if len(answer) > _SURELY_SENT and running.parent is None and len(answer) > self._bounds().answer_bytes:
                    answer, result = await self._fit(running, result, answer)
                size = len(answer)
                await self._record(running, result, size)
            finally:
                self._finish(running, result, size)
            # Who took the session over before finds the call running, and is its port now; who does so from here on
            # finds it done, and gets the kept answer.
            await running.port.deliver(running, answer)
        finally:
            if running.parent is None:
                running.session.calls.delivered()
                self._undelivered -= 1
            running.task = running.timer = None  # they refer back to the call

    def _finish(self, running: RunningCall, result: ToolResult, size: int) -> None:
        kin = None if running.parent is None else running.parent.family
        if kin is not None:
            kin.leave(running)
            del self._made[running]
        else:
            calls, before = running.session.calls, running.ended_before
            if running.repeated and before is None:  # refused: what the journal knows is another call's end
                calls.finish_in_journal(running.key)
            else:
                ended, journalled = (self._clock(), running.journalled) if before is None else (before, True)
                calls.finish(running.key, result, size, running.call.frame_bytes, ended, journalled=journalled)
            del self._calls[running.session.id, running.key]
            if running.family is not None:
                self._orchestrations.discard(running)
            self._undelivered += 1
        if not self._calls and not self._made:
            self._idle.set()

    async def _record(self, running: RunningCall, result: ToolResult, size: int) -> None:
        if running.goes_on or running.ended_before is not None:  # to the journal it has not ended, or has long since
            return
        try:
            if running.journalled:
                await self._journal.end(running, result, size)
                # It was closed in the journal before this call was there.
                if running.parent is None and running.session.ended:
                    self._journal.session_closed(running.session)
            else:
                self._recorder.ended(running, result, size)
        except Exception:  # noqa: BLE001 - what cannot be written down is still answered
            _log.exception("a call could not be recorded", tool=running.tool.name)

    def _rendered(self, running: RunningCall, result: ToolResult) -> tuple[bytes, ToolResult]:
        """The answer as it travels, and the result that it tells: an error where that is no JSON."""
        try:
            return running.port.render(running, result), result
        except (TypeError, ValueError, RecursionError) as error:
            result = call_outcome.failed(running, call_outcome.not_serialisable(running, error), self._clock())
            return running.port.render(running, result), result

    async def _fit(self, running: RunningCall, result: ToolResult, answer: bytes) -> tuple[bytes, ToolResult]:
        """What is sent for an answer that is too large: where its result is kept. Where that fails, the answer as it
        is, if a frame takes it; else an error.
        """
        most, size = self._bounds().max_frame_bytes, len(answer)
        try:
            if result.ok:
                result = await spilled(running, result, size, self._services.results)
                return running.port.render(running, result), result
            refusal = call_outcome.too_large(size, most)
        except CallError as error:
            _log.warning("an answer could not be kept as a file", tool=running.tool.name, reason=error.message)
            refusal = call_outcome.too_large(size, most, why_not(error))
        if size <= most:
            return answer, result
        result = call_outcome.failed(running, refusal, self._clock())
        return running.port.render(running, result), result
