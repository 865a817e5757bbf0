"""The one road of every call, whichever transport it came by:

    resolve the tool ▸ bind and check arguments ▸ accept (or replay) ▸ admit ▸ start ▸ run ▸ fit ▸ record ▸ deliver

Whether a call is admitted at all is decided here; it waits for its turn, by its source's rate and by the permits, and
goes on from there, in ``execution``. The budget is asked where a vendor is (``context``), since only there is it known
that one will be.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count

import structlog

from ...protocol.error_codes import (
    CallError,
    RequestIdConflictError,
    ResultExpiredError,
    ServiceUnavailableError,
    ToolError,
)
from ...protocol.frame_decoding import request_key
from ...protocol.session_calls import PendingResult, RequestIdState
from ...protocol.tool_call import CallStatus, Metadata, RequestId, Timings, ToolCall, ToolResult
from ...sandbox import Sandbox
from ...tools import DaemonView, FileAccess, RetainedResults, Tool, ToolCatalog, bind
from . import call_outcome
from .admission import deadline_s, session_is_full, too_many_orchestrations, too_many_waiting
from .call_context import ContextServices, ConversationAccess
from .call_execution import STUCK_S, CallExecution
from .child_calls import family_of
from .dispatch_limits import DispatchLimits
from .permits import Permits, RunPermit
from .principal_limits import PrincipalLimits
from .provider_limiter import ProviderLimiter
from .rate_limits import RateLimits
from .recording_ports import JournalPort, RecorderPort
from .running_call import CallPort, EndReason, RunningCall, Session, UsageMeter
from .session_manager import SessionManager

_log = structlog.get_logger(__name__)


class Router:
    """Takes calls from transports and sees to it that each accepted one gets exactly one terminal answer."""

    def __init__(
        self,
        offer: ToolCatalog,
        gates: Mapping[str, ProviderLimiter],
        *,
        absent: Mapping[str, str],
        permits: Permits,
        bounds: DispatchLimits,
        daemon: DaemonView,
        files: FileAccess,
        conversations: ConversationAccess,
        allowances: PrincipalLimits,
        results: RetainedResults,
        rates: RateLimits,
        sandbox: Sandbox,
        recorder: RecorderPort,
        journal: JournalPort,
        epoch: str,
    ) -> None:
        self.offer = offer
        """The tools, by toolset. Another one may take its place at any time; calls that run keep the tool they have."""
        self.gates = gates
        self.bounds = bounds
        self.permits = permits
        self.files = files
        """What tools may read."""
        self.sessions = SessionManager(lambda: self.bounds, journal, allowances.permits_of)
        self._recorder = recorder
        self._journal = journal
        self._clock: Callable[[], float] = time.monotonic
        services = ContextServices(daemon, files, gates, absent, conversations, allowances.budgets_of, results, sandbox)
        self._execution = CallExecution(
            services,
            recorder,
            journal,
            offer=lambda: self.offer,
            bounds=lambda: self.bounds,
            permits=permits,
            sessions=self.sessions,
            rates=rates,
            next_id=self._next_id,
        )
        self._ids = count(1)
        # Of this start of the daemon; calls are numbered within it.
        self._epoch = epoch
        # Set once the daemon goes down: why no call is taken any more.
        self._closed: str | None = None

    def __repr__(self) -> str:
        return f"<Router calls={len(self._execution)} {self.permits!r}>"

    @property
    def accepted(self) -> int:
        """Calls whose answer is not sent yet."""
        return len(self._execution)

    @property
    def waiting(self) -> int:
        """Calls that are not answered, and want a run permit and hold none; what calls make does not count."""
        execution = self._execution
        return max(0, execution.wanting - self.permits.in_use + execution.held_by_children)

    @property
    def running(self) -> Iterable[RunningCall]:
        """The calls that are accepted and not answered yet, the oldest first; then those that they make."""
        return self._execution.running

    @property
    def accepting(self) -> bool:
        return self._closed is None

    @property
    def durable(self) -> bool:
        """Whether results reach the disk before they are told."""
        return self._journal.writable

    # --- calls -------------------------------------------------------------------------------------------------------

    def submit(self, session: Session, call: ToolCall, port: CallPort) -> RunningCall | ToolResult | None:
        """Let one call onto the road.

        Returns the accepted call, which runs from now on and is answered through ``port``; or a result that the
        transport sends at once, a refusal or the stored result of a call that is done; or None where the call runs
        already under the same id, and its one answer will come.
        Never raises for what a caller did.
        """
        received = self._clock()
        try:
            key = request_key(call.request_id)
            try:
                tool = self.offer.find(session.toolset, call.name, usable=session.usable)
                arguments = bind(tool, call.arguments)
            except CallError:
                # An accepted call has its one answer, whatever became of its tool since.
                verdict = session.calls.classify(key, call.name, call.arguments, received)
                if verdict in {RequestIdState.NEW, RequestIdState.FULL}:
                    raise
                return self._repeat(verdict, session, key, received)
            verdict = session.calls.accept(key, tool.name, call.arguments, received, echo_id=call.echo_id)
            if verdict is not RequestIdState.NEW:
                return self._repeat(verdict, session, key, received)
            self.sessions.accepted(session, key)
            self._admit(session, tool, key)
        except CallError as error:
            return self._refuse(session, call, error, received)
        timeout_s, lowered = deadline_s(
            call.timeout_ms, tool.timeout_s or self.bounds.default_timeout_s, self.bounds.max_timeout_s
        )
        call_id = self._next_id()
        running = RunningCall(
            id=call_id,
            key=key,
            session=session,
            call=call,
            tool=tool,
            arguments=arguments,
            port=port,
            permit=RunPermit(session.permits, self.permits),
            family=family_of(tool, call_id) if tool.orchestration else None,
            meter=UsageMeter(),
            started=received,
            started_at=time.time(),
            deadline=received + timeout_s,
            timeout_lowered=lowered,
            last_report=received,
        )
        self._execution.begin(running)
        return running

    def refuse_frame(self, session: Session, request_id: RequestId, error: ToolError) -> ToolResult:
        """A transport could not make a call of what it was sent, but can address the answer: the call's one record."""
        result = ToolResult(Metadata(0.0, Timings()), error=error)
        self._recorder.refused(session, ToolCall(request_id, "", {}), result, call_id=self._next_id())
        return result

    def status_of(self, session: Session, request_id: RequestId) -> CallStatus:
        """What memory knows of one of a session's request ids."""
        return session.calls.status(request_key(request_id), self._clock())

    async def states_of(self, session: Session, request_ids: Sequence[RequestId]) -> list[CallStatus]:
        """What is known of some of a session's request ids, on the disk too.

        Raises:
            ServiceUnavailableError: the disk does not say.
        """
        keys = [request_key(one) for one in request_ids]
        known = await self.sessions.states(session, keys)
        return [known[key] for key in keys]

    def running_call(self, session: Session, request_id: RequestId) -> RunningCall | None:
        """A session's call of this id, while it has no answer."""
        return self._execution.find(session, request_key(request_id))

    def result_of(self, session: Session, request_id: RequestId) -> ToolResult | None:
        """The result of a session's call that is done, where it is kept."""
        return session.calls.result(request_key(request_id), self._clock())

    def acknowledge(self, session: Session, request_ids: Iterable[RequestId]) -> None:
        """A client has these results; they need not be kept."""
        forgotten = session.calls.acknowledge(map(request_key, request_ids))
        if forgotten and session.resumable:
            self._journal.acknowledged(session, forgotten)

    def cancel(self, session: Session, key: str) -> bool:
        """End a session's running call as its caller asks. False where no such call runs."""
        running = self._execution.find(session, key)
        if running is None:
            return False
        self._execution.end(running, EndReason.CALLER)
        return True

    def end_for_operator(self, call_id: str) -> bool:
        """End the call of this id (``RunningCall.id``), whoever made it. False where no such call runs."""
        for running in self.running:
            if running.id == call_id:
                self._execution.end(running, EndReason.OPERATOR)
                return True
        return False

    # --- connections -------------------------------------------------------------------------------------------------

    def attach(self, session: Session, port: CallPort) -> tuple[CallPort | None, list[PendingResult]]:
        """A connection has the session from now on: what still runs is answered through its port.

        Returns the port that it takes over from, if any, and the answers that are kept and may have been missed.
        """
        superseded = self.sessions.take(session, port)
        now = self._clock()
        kept = list(session.calls.retained(now))
        running = self._execution.of(session)
        for call in running:
            call.port = port
            if now - call.latest_at > self.bounds.progress_window_s:
                call.latest = None
        if running:
            self._beat(port, running, now)
        return superseded, kept

    def leave(self, session: Session, port: CallPort) -> None:
        """A connection is gone: of its calls end those that are to end with it, unless another took over."""
        running = self._execution.of(session)
        if not self.sessions.leave(session, port):
            return
        for call in running:
            call.port = session.away
            if call.ends_with_connection:
                self._execution.end(call, EndReason.DISCONNECT)

    # --- the daemon's life -------------------------------------------------------------------------------------------

    async def recall_detached(self) -> None:
        """At the start: look which detached calls the process before this one left to go on.

        Raises:
            ServiceUnavailableError: the disk does not say.
        """
        await self._execution.detached.recall()

    async def go_on_detached(self) -> None:
        """Begin what ``recall_detached`` found, once the tools are there that it needs."""
        await self._execution.detached.go_on(self._epoch)

    async def close(self, reason: str, grace_s: float) -> None:
        """Take no more calls, let what runs finish for ``grace_s`` seconds, then end it and answer for it."""
        self._closed = reason
        self._execution.detached.hold()
        await self._execution.idle(grace_s)
        for running in self.running:
            self._execution.end(running, EndReason.SHUTDOWN)
        await self._execution.idle(STUCK_S / 2)
        for running in self.running:
            self._execution.answer_for(running)
        await self._execution.idle(STUCK_S / 2)
        await self.sessions.keep_all()

    async def keep_beat(self) -> None:
        """For as long as the daemon runs: keep callers of long calls informed, and answer for tools that hang."""
        while True:
            interval = self.bounds.progress_interval_s
            tick = min(1.0, interval / 4)
            await asyncio.sleep(tick)
            now = self._clock()
            for port, calls in self._execution.by_port().items():
                if any(now - running.last_report >= interval - tick for running in calls):
                    self._beat(port, calls, now)
            self._execution.answer_for_the_stuck()

    # --- within ------------------------------------------------------------------------------------------------------

    def _repeat(self, verdict: RequestIdState, session: Session, key: str, now: float) -> ToolResult | None:
        """A request id that was used before, or a session that is full: the stored result, nothing, or a refusal."""
        if verdict is RequestIdState.RUNNING:
            return None
        result = session.calls.result(key, now)
        if verdict is RequestIdState.DONE and result is not None:
            return call_outcome.replayed(result)
        if verdict is RequestIdState.FULL:
            raise session_is_full(session.calls.max_accepted)
        raise RequestIdConflictError if verdict is RequestIdState.CONFLICT else ResultExpiredError

    def _admit(self, session: Session, tool: Tool, key: str) -> None:
        refusal: CallError | None
        if self._closed is not None:
            refusal = ServiceUnavailableError(self._closed, executed="no")
        elif tool.orchestration:
            most = self.bounds.max_orchestrations_per_session
            refusal = too_many_orchestrations(most) if self._execution.orchestrations_in(session) >= most else None
        elif tool.unmetered or (session.permits.free and self.permits.free):
            return  # it runs at once, whatever else waits
        else:
            refusal = too_many_waiting(self.waiting, self.bounds.max_waiting)
        if refusal is not None:
            session.calls.withdraw(key)
            raise refusal

    def _refuse(self, session: Session, call: ToolCall, error: CallError, received: float) -> ToolResult:
        latency_ms = round((self._clock() - received) * 1000, 3)
        result = ToolResult(Metadata(latency_ms, Timings()), error=error.to_tool_error())
        self._recorder.refused(session, call, result, call_id=self._next_id())
        return result

    def _next_id(self) -> str:
        return f"{self._epoch}-{next(self._ids):x}"

    def _beat(self, port: CallPort, calls: Sequence[RunningCall], now: float) -> None:
        try:
            port.beat(calls, now)
        except Exception:  # noqa: BLE001 - one caller's way back must not silence the others'
            _log.exception("a beat failed")
        for running in calls:
            running.last_report = now
