"""The one road of every call, whichever transport it came by:

    resolve the tool ▸ bind and check arguments ▸ accept ▸ admit ▸ run ▸ fit the result ▸ record

Replay and the journal come between *accept* and *admit*; rate limits and budgets at *admit*.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Protocol
from uuid import uuid4

import structlog

from ...protocol.calls import CallStatus, ClientInfo, Metadata, Principal, RequestId, Timings, ToolCall, ToolResult
from ...protocol.decoding import request_key
from ...protocol.errors import (
    CallError,
    RequestIdConflictError,
    ResultExpiredError,
    ServiceUnavailableError,
    ToolError,
)
from ...protocol.session import SessionCalls, Verdict
from ...protocol.shelf import Shelf
from ...tools import DaemonView, FileAccess, Registry, Tool, bind, content
from ..observe import bind_call
from . import outcome
from .admission import deadline_s, session_is_full, too_many_waiting
from .calls import CallPort, EndedBy, Meter, RunningCall, Session
from .context import CallContext, Services
from .gate import ProviderGate
from .permits import Permits, RunPermit

_log = structlog.get_logger(__name__)

_STUCK_S = 1.0
"""A tool that has not ended this long after it was told to is answered for."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What dispatch keeps to; counts and seconds as the names say."""

    max_running_per_session: int
    max_accepted_per_session: int
    max_waiting: int
    default_timeout_s: float
    max_timeout_s: float
    max_frame_bytes: int
    progress_interval_s: float
    result_ttl_s: float
    max_kept_bytes: int
    """Of one principal's results."""


class Recorder(Protocol):
    """Where ended calls are written down (audit, metrics). Never blocks."""

    def ended(self, running: RunningCall, result: ToolResult, result_bytes: int) -> None: ...

    def refused(self, session: Session, call: ToolCall, result: ToolResult, *, call_id: str) -> None: ...


class Router:
    """Takes calls from transports and sees to it that each accepted one gets exactly one terminal answer."""

    def __init__(
        self,
        registry: Registry,
        gates: Mapping[str, ProviderGate],
        *,
        absent: Mapping[str, str],
        permits: Permits,
        bounds: Bounds,
        daemon: DaemonView,
        files: FileAccess,
        recorder: Recorder,
        epoch: str,
    ) -> None:
        self.registry = registry
        self.gates = gates
        self.bounds = bounds
        self.permits = permits
        self._recorder = recorder
        # The same clock as the loop's, which uvloop reads to the millisecond only.
        # Held, since asking for the running loop costs a system call on Python 3.11.
        self._loop = asyncio.get_running_loop()
        self._clock: Callable[[], float] = time.monotonic
        self._services = Services(daemon, files, gates, absent)
        # Accepted calls whose answer is not sent yet.
        self._calls: dict[tuple[str, str], RunningCall] = {}
        # Of these, those that are answered, and whose caller has not taken the answer.
        self._undelivered = 0
        # Results for those who ask again, by principal.
        self._shelves: dict[str, Shelf] = {}
        # Answers for tools that do not end; held so that they are not collected.
        self._answers: set[asyncio.Task[None]] = set()
        self._ids = count(1)
        # Of this start of the daemon; calls are numbered within it.
        self._epoch = epoch
        # Set once the daemon goes down: why no call is taken any more.
        self._closed: str | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    def __repr__(self) -> str:
        return f"<Router calls={len(self._calls)} {self.permits!r}>"

    @property
    def accepted(self) -> int:
        """Calls that are accepted and not answered yet."""
        return len(self._calls)

    @property
    def waiting(self) -> int:
        """Calls that are not answered and hold no run permit."""
        return max(0, len(self._calls) - self._undelivered - self.permits.in_use)

    @property
    def accepting(self) -> bool:
        return self._closed is None

    @property
    def running(self) -> Iterable[RunningCall]:
        """The calls that are accepted and not answered yet, the oldest first."""
        return [running for running in self._calls.values() if not running.answered]

    def open_session(
        self, label: str, principal: Principal, client: ClientInfo, *, transport: str, streaming: bool
    ) -> Session:
        """A new client's standing, with its own bounds."""
        session_id = uuid4().hex
        return Session(
            id=session_id,
            label=label,
            principal=principal,
            client=client,
            transport=transport,
            streaming=streaming,
            calls=SessionCalls(session_id, self.bounds.max_accepted_per_session, self._shelf_of(principal)),
            permits=Permits("session", self.bounds.max_running_per_session),
        )

    def submit(self, session: Session, call: ToolCall, port: CallPort) -> RunningCall | ToolResult | None:
        """Let one call onto the road.

        Returns the accepted call, which runs from now on and is answered through ``port``; or a result that the
        transport sends at once, a refusal or the stored result of a call that is done; or None where the call runs
        already under the same id, and its one answer will come.
        Never raises for what a caller did.
        """
        received = self._clock()
        try:
            if self._closed is not None:
                raise ServiceUnavailableError(self._closed, executed="no")
            tool = self.registry.get(call.name)
            arguments = bind(tool, call.arguments)
            key = request_key(call.request_id)
            verdict = session.calls.accept(key, tool.name, call.arguments, received, local=tool.local)
            if verdict is not Verdict.NEW:
                return self._repeat(verdict, session, key, received)
            self._admit(session, tool, key)
        except CallError as error:
            return self._refuse(session, call, error, received)
        timeout_s, lowered = deadline_s(
            call.timeout_ms, tool.timeout_s or self.bounds.default_timeout_s, self.bounds.max_timeout_s
        )
        running = RunningCall(
            id=self._next_id(),
            key=key,
            session=session,
            call=call,
            tool=tool,
            arguments=arguments,
            port=port,
            permit=RunPermit(session.permits, self.permits),
            meter=Meter(),
            started=received,
            started_at=time.time(),
            deadline=received + timeout_s,
            timeout_lowered=lowered,
            last_report=received,
        )
        self._calls[session.id, key] = running
        self._idle.clear()
        running.task = self._loop.create_task(self._travel(running))
        running.timer = self._loop.call_at(running.deadline, self._end, running, EndedBy.DEADLINE)
        return running

    def refuse_frame(self, session: Session, request_id: RequestId, error: ToolError) -> ToolResult:
        """A transport could not make a call of what it was sent, but can address the answer: the call's one record."""
        result = ToolResult(Metadata(0.0, Timings()), error=error)
        self._recorder.refused(session, ToolCall(request_id, "", {}), result, call_id=self._next_id())
        return result

    def status_of(self, session: Session, request_id: RequestId) -> CallStatus:
        """What is known of one of a session's request ids."""
        return session.calls.status(request_key(request_id), self._clock())

    def cancel(self, session: Session, key: str) -> bool:
        """End a session's running call as its caller asks. False where no such call runs."""
        running = self._calls.get((session.id, key))
        if running is None or running.answered:
            return False
        self._end(running, EndedBy.CALLER)
        return True

    def end_for_operator(self, call_id: str) -> bool:
        """End the call of this id (``RunningCall.id``), whoever made it. False where no such call runs."""
        for running in self.running:
            if running.id == call_id:
                self._end(running, EndedBy.OPERATOR)
                return True
        return False

    def leave(self, session: Session, port: CallPort) -> None:
        """A connection is gone: of its calls end those that are to end with it, and its results go."""
        for running in list(self._calls.values()):
            if running.port is port and running.ends_with_connection:
                self._end(running, EndedBy.DISCONNECT)
        session.calls.end()

    async def close(self, reason: str, grace_s: float) -> None:
        """Take no more calls, let what runs finish for ``grace_s`` seconds, then end it and answer for it."""
        self._closed = reason
        await self._settle(grace_s)
        for running in list(self._calls.values()):
            self._end(running, EndedBy.SHUTDOWN)
        await self._settle(_STUCK_S / 2)
        for running in list(self._calls.values()):
            self._answer_for(running)
        await self._settle(_STUCK_S / 2)

    async def keep_beat(self) -> None:
        """For as long as the daemon runs: keep callers of long calls informed, and answer for tools that hang."""
        interval = self.bounds.progress_interval_s
        tick = min(1.0, interval / 4)
        while True:
            await asyncio.sleep(tick)
            now = self._clock()
            for port, calls in self._by_port().items():
                if any(now - running.last_report >= interval - tick for running in calls):
                    self._beat(port, calls, now)
            for running in list(self._calls.values()):
                if running.ended_at is not None and now > running.ended_at + _STUCK_S:
                    self._answer_for(running)

    # --- the road ----------------------------------------------------------------------------------------------------

    def _repeat(self, verdict: Verdict, session: Session, key: str, now: float) -> ToolResult | None:
        """A request id that was used before, or a session that is full: the stored result, nothing, or a refusal."""
        if verdict is Verdict.SAME:
            return None
        result = session.calls.result(key, now)
        if verdict is Verdict.DONE and result is not None:
            return outcome.replayed(result)
        if verdict is Verdict.FULL:
            raise session_is_full(self.bounds.max_accepted_per_session)
        raise RequestIdConflictError if verdict is Verdict.CONFLICT else ResultExpiredError

    def _admit(self, session: Session, tool: Tool, key: str) -> None:
        if tool.unmetered or (session.permits.free and self.permits.free):
            return  # it runs at once, whatever else waits
        refusal = too_many_waiting(self.waiting, self.bounds.max_waiting)
        if refusal is not None:
            session.calls.withdraw(key)
            raise refusal

    def _refuse(self, session: Session, call: ToolCall, error: CallError, received: float) -> ToolResult:
        latency_ms = round((self._clock() - received) * 1000, 3)
        result = ToolResult(Metadata(latency_ms, Timings()), error=error.to_tool_error())
        self._recorder.refused(session, call, result, call_id=self._next_id())
        return result

    def _shelf_of(self, principal: Principal) -> Shelf:
        shelf = self._shelves.get(principal.name)
        if shelf is None:
            shelf = self._shelves[principal.name] = Shelf(self.bounds.max_kept_bytes, self.bounds.result_ttl_s)
        return shelf

    def _next_id(self) -> str:
        return f"{self._epoch}-{next(self._ids):x}"

    def _beat(self, port: CallPort, calls: Sequence[RunningCall], now: float) -> None:
        try:
            port.beat(calls, now)
        except Exception:  # noqa: BLE001 - one caller's way back must not silence the others'
            _log.exception("a beat failed")
        for running in calls:
            running.last_report = now

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
                    returned = await self._enter(running)
            outputs, structured = content(returned, tool=running.tool.name)
            return ToolResult(outcome.metadata_of(running, self._clock()), outputs, structured)
        except BaseException as error:  # noqa: BLE001 - a tool may raise anything, SystemExit included, and harms nobody
            failure = outcome.of_exception(running, error)
        return outcome.failed(running, failure, self._clock())

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
        self._undelivered += 1
        if self._undelivered == len(self._calls):
            self._idle.set()
        size = 0
        try:
            answer, result = self._fit(running, result)
            size = len(answer)
            self._record(running, result, size)
            await running.port.deliver(running, answer)
        finally:
            running.session.calls.finish(running.key, result, size, running.call.frame_bytes, self._clock())
            del self._calls[running.session.id, running.key]
            self._undelivered -= 1
            running.task = running.timer = None  # they refer back to the call

    def _record(self, running: RunningCall, result: ToolResult, size: int) -> None:
        try:
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
        if len(answer) > self.bounds.max_frame_bytes:
            refusal = outcome.too_large(len(answer), self.bounds.max_frame_bytes)
            result = outcome.failed(running, refusal, self._clock())
            answer = running.port.render(running, result)
        return answer, result

    def _end(self, running: RunningCall, ended_by: EndedBy) -> None:
        if running.ended_by is not None or running.answered:
            return
        running.ended_by = ended_by
        running.ended_at = self._clock()  # from here on the beat's watch answers for it
        if running.task is not None:
            running.task.cancel()
        if not running.begun:  # a task that is cancelled before its first step never takes it
            self._answer_for(running)

    def _answer_for(self, running: RunningCall) -> None:
        """Answer a call whose task will not do it, or not in time."""
        if running.answered:
            return
        result = outcome.failed(running, outcome.cut_off(running), self._clock())
        answer = asyncio.create_task(self._answer(running, result))
        self._answers.add(answer)
        answer.add_done_callback(self._answers.discard)

    async def _settle(self, timeout_s: float) -> None:
        """Wait until all calls are answered, for so long at most; not for readers that do not take their answers."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()

    def _by_port(self) -> Mapping[CallPort, Sequence[RunningCall]]:
        ports: dict[CallPort, list[RunningCall]] = {}
        for running in self._calls.values():
            if not running.answered:
                ports.setdefault(running.port, []).append(running)
        return ports
