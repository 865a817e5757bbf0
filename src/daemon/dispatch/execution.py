"""The calls under way: each runs in a task of its own and gets exactly one terminal answer, whatever its tool does.

start (journal) ▸ run ▸ fit the result ▸ record ▸ deliver
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import structlog

from ...protocol.calls import ToolResult
from ...protocol.errors import ResultExpiredError
from ...tools import content
from ..observe import bind_call
from . import outcome
from .calls import CallPort, EndedBy, RunningCall, Session
from .context import CallContext, Services
from .recording import Journal, Recorder

_log = structlog.get_logger(__name__)

STUCK_S: Final = 1.0
"""A tool that has not ended this long after it was told to is answered for."""


class Execution:
    """Runs accepted calls, and holds them until their answers are on their way no more."""

    def __init__(self, services: Services, recorder: Recorder, journal: Journal, *, max_frame_bytes: int) -> None:
        self._services = services
        self._recorder = recorder
        self._journal = journal
        self._max_frame_bytes = max_frame_bytes
        # The same clock as the loop's, which uvloop reads to the millisecond only.
        # Held, since asking for the running loop costs a system call on Python 3.11.
        self._loop = asyncio.get_running_loop()
        self._clock: Callable[[], float] = time.monotonic
        # Accepted calls that their sessions' books have as running.
        self._calls: dict[tuple[str, str], RunningCall] = {}
        # Answers that their callers have not taken yet. Their ids may be in use again.
        self._undelivered = 0
        # Answers for tools that do not end; held so that they are not collected.
        self._answers: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def __repr__(self) -> str:
        return f"<Execution calls={len(self)}>"

    def __len__(self) -> int:
        """Calls whose answer is not sent yet."""
        return len(self._calls) + self._undelivered

    @property
    def unanswered(self) -> int:
        return len(self._calls)

    @property
    def running(self) -> list[RunningCall]:
        """The calls that have no answer yet, the oldest first."""
        return [running for running in self._calls.values() if not running.answered]

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
        self._calls[running.session.id, running.key] = running
        self._idle.clear()
        running.task = self._loop.create_task(self._travel(running))
        running.timer = self._loop.call_at(running.deadline, self.end, running, EndedBy.DEADLINE)

    def end(self, running: RunningCall, ended_by: EndedBy) -> None:
        """End a call before its tool does. Does nothing where it has its answer or was told to end before."""
        if running.ended_by is not None or running.answered:
            return
        running.ended_by = ended_by
        running.ended_at = self._clock()  # from here on the beat's watch answers for it
        if running.task is not None:
            running.task.cancel()
        if not running.begun:  # a task that is cancelled before its first step never takes it
            self.answer_for(running)

    def answer_for(self, running: RunningCall) -> None:
        """Answer a call whose task will not do it, or not in time."""
        if running.answered:
            return
        result = outcome.failed(running, outcome.cut_off(running), self._clock())
        answer = asyncio.create_task(self._answer(running, result))
        self._answers.add(answer)
        answer.add_done_callback(self._answers.discard)

    def answer_for_the_stuck(self) -> None:
        """Answer all calls whose tools were told to end and have not."""
        now = self._clock()
        for running in self.running:
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
            if running.tool.unmetered:
                returned = await self._enter(running)
            else:
                async with running.permit:
                    running.meter.queue_s = self._clock() - running.started
                    if not running.tool.local:
                        await self._start(running)
                    returned = await self._enter(running)
            outputs, structured = content(returned, tool=running.tool.name)
            return ToolResult(outcome.metadata_of(running, self._clock()), outputs, structured)
        except BaseException as error:  # noqa: BLE001 - a tool may raise anything, SystemExit included, and harms nobody
            failure = outcome.of_exception(running, error)
        return outcome.failed(running, failure, self._clock())

    async def _start(self, running: RunningCall) -> None:
        """Have it on the disk that the call starts (decision 17)."""
        # Also where the wait is cut off: it may have been written.
        running.journalled = running.session.journalled = True
        try:
            new = await self._journal.start(running)
        except Exception:
            running.journalled = False
            raise
        if not new:
            running.journalled = False
            raise ResultExpiredError

    async def _enter(self, running: RunningCall) -> object:
        running.running = True
        entered = self._clock()
        try:
            return await running.tool.function(running.arguments, CallContext(running, self._services))
        finally:
            running.meter.tool_s = self._clock() - entered
            for stray in tuple(running.strays or ()):
                stray.cancel()

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
                answer, result = self._fit(running, result)
                size = len(answer)
                await self._record(running, result, size)
            finally:
                self._finish(running, result, size)
            # Who took the session over before finds the call running, and is its port now; who does so from here on
            # finds it done, and gets the kept answer.
            await running.port.deliver(running, answer)
        finally:
            running.session.calls.delivered()
            self._undelivered -= 1
            running.task = running.timer = None  # they refer back to the call

    def _finish(self, running: RunningCall, result: ToolResult, size: int) -> None:
        running.session.calls.finish(
            running.key, result, size, running.call.frame_bytes, self._clock(), journalled=running.journalled
        )
        del self._calls[running.session.id, running.key]
        self._undelivered += 1
        if not self._calls:
            self._idle.set()

    async def _record(self, running: RunningCall, result: ToolResult, size: int) -> None:
        try:
            if running.journalled:
                await self._journal.end(running, result, size)
                if running.session.over:  # it was closed in the journal before this call was there
                    self._journal.closed(running.session)
            else:
                self._recorder.ended(running, result, size)
        except Exception:  # noqa: BLE001 - what cannot be written down is still answered
            _log.exception("a call could not be recorded", tool=running.tool.name)

    def _fit(self, running: RunningCall, result: ToolResult) -> tuple[bytes, ToolResult]:
        """The answer as it travels, and the result that it tells: an error where it cannot travel as it is."""
        try:
            answer = running.port.render(running, result)
        except (TypeError, ValueError, RecursionError) as error:
            result = outcome.failed(running, outcome.not_serialisable(running, error), self._clock())
            return running.port.render(running, result), result
        if len(answer) > self._max_frame_bytes:
            refusal = outcome.too_large(len(answer), self._max_frame_bytes)
            result = outcome.failed(running, refusal, self._clock())
            answer = running.port.render(running, result)
        return answer, result
