"""The path of every call, on every transport:

    resolve ▸ bind ▸ register (or replay) ▸ admit ▸ start ▸ run ▸ fit ▸ record ▸ deliver

The router does the first four stages, with the pure functions of ``call_preparation`` and ``admission``.
``call_execution`` does the rest, beginning with the wait for the source's rate limit and the permits. ``call_context``
checks the budget for each vendor request.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count

from msgspec import UNSET

from ...audit import error_summary
from ...call_hooks import CallHooks
from ...fairness import Permits
from ...protocol.error_codes import CallError, ToolError
from ...protocol.frame_decoding import request_key
from ...protocol.session_calls import PendingResult, RequestIdState
from ...protocol.tool_call import CallStatus, Metadata, RequestId, Timings, ToolCall, ToolResult
from ...sandbox import Sandbox
from ...tools import CredentialLookup, DaemonView, FileAccess, RetainedResults, Tool, ToolCatalog
from .admission import admission_refusal, timeout_s_of, waiting_share
from .call_creation import make_call
from .call_execution import STUCK_S, CallExecution
from .call_outcome import refused
from .call_phase import EndReason
from .call_preparation import PreparedCall, replay
from .context_services import ContextServices, ConversationAccess
from .dispatch_limits import DispatchLimits
from .heartbeats import Heartbeats
from .held_bytes import UNCOUNTED_BYTES, HeldBytes
from .pause_port import PausePort
from .principal_files import FileOwnersPort
from .principal_limits import PrincipalLimits
from .provider_limiter import ProviderLimiter
from .rate_limits import RateLimits
from .recording_ports import JournalPort, RecorderPort, TracePort
from .running_call import CallPort, RunningCall, Session
from .session_manager import SessionManager
from .vendor_admission import VendorAdmissions


class Router:
    """Accepts calls from transports. Each accepted call gets exactly one answer."""

    def __init__(
        self,
        *,
        catalog: ToolCatalog,
        limiters: Mapping[str, ProviderLimiter],
        unconfigured: Mapping[str, str],
        permits: Permits,
        limits: DispatchLimits,
        daemon: DaemonView,
        files: FileAccess,
        conversations: ConversationAccess,
        principal_limits: PrincipalLimits,
        results: RetainedResults,
        rate_limits: RateLimits,
        sandbox: Sandbox,
        file_owners: FileOwnersPort,
        recorder: RecorderPort,
        journal: JournalPort,
        pauses: PausePort,
        epoch: str,
        credentials: CredentialLookup,
        hooks: CallHooks | None = None,
        traces: TracePort | None = None,
        admissions: VendorAdmissions | None = None,
    ) -> None:
        self.catalog = catalog
        """The tools of each toolset. It can be replaced at any time; running calls keep their tool."""
        self.on_listing: Callable[[], None] = lambda: None
        """Called by transports when a client lists the tools."""
        self.limiters = limiters
        self.limits = limits
        self.permits = permits
        self.files = files
        """The files that tools may read."""
        self.sessions = SessionManager(
            limits=lambda: self.limits, journal=journal, permits_of=principal_limits.permits_of
        )
        self.unread = HeldBytes(lambda: self.limits.unread_bytes)
        """Answers that their clients have not read."""
        self.requests = HeldBytes(lambda: self.limits.request_bytes)
        """Frames of calls without an answer."""
        self._recorder = recorder
        self._journal = journal
        self._quotas = principal_limits.quotas
        self.principal_budgets = principal_limits.budget_states
        """The states of the budgets of principals (``Budget.state``), by principal."""
        self._clock: Callable[[], float] = time.monotonic
        services = ContextServices(
            daemon=daemon,
            files=files,
            limiters=limiters,
            unconfigured=unconfigured,
            conversations=conversations,
            budgets_of=principal_limits.budgets_of,
            results=results,
            sandbox=sandbox,
            file_owners=file_owners,
            rate_limits=rate_limits,
            credentials=credentials,
            quotas=principal_limits.quotas,
            hooks=hooks or CallHooks(),
            traces=traces,
            admissions=admissions,
        )
        self._execution = CallExecution(
            services=services,
            recorder=recorder,
            journal=journal,
            catalog=lambda: self.catalog,
            limits=lambda: self.limits,
            permits=permits,
            sessions=self.sessions,
            rate_limits=rate_limits,
            unread=self.unread,
            requests=self.requests,
            pauses=pauses,
            next_id=self._next_id,
        )
        self._unanswered = self._execution.unanswered
        self.heartbeats = Heartbeats(self._execution, lambda: self.limits)
        self.lookup = self._execution.lookup
        """The calls of a principal, by their ids."""
        self.paused = self._execution.paused
        """The calls that wait for a person."""
        self.agent_budgets = self._execution.agent_budgets
        """The budgets of agents that ran since the start."""
        self.cache = self._execution.cache
        """The cached results of read-only tools."""
        self.questions = self._execution.questions
        """The questions of running calls to their clients."""
        self.node_tokens = self.questions.node_tokens
        """In a cluster: tokens that name the node that has asked a question, parked a call, or has a client's
        stream."""
        self.detached = self._execution.detached
        """Accepts calls that are detached from the start."""
        # Call ids are numbered within an epoch, which is one start of the daemon.
        self._epoch = epoch
        self._ids = count(1)
        # The reason for refusing all calls; set when the daemon stops.
        self._closed: str | None = None

    def __repr__(self) -> str:
        return f"<Router calls={len(self._unanswered)} {self.permits!r}>"

    @property
    def accepted(self) -> int:
        """The number of calls whose answer has not been sent."""
        return len(self._unanswered)

    @property
    def waiting(self) -> int:
        """The number of calls that wait for a run permit; child calls do not count."""
        return max(0, self._unanswered.permit_users - self.permits.in_use + self._unanswered.permits_of_children)

    @property
    def held_bytes(self) -> int:
        """The bytes of requests, unread answers and cached results."""
        return self.requests.total + self.unread.total + self.sessions.cached_bytes

    @property
    def calls(self) -> Iterable[RunningCall]:
        """The accepted calls without an answer: first those of clients, the oldest first, then child calls."""
        return self._unanswered.all

    @property
    def accepting(self) -> bool:
        return self._closed is None

    @property
    def durable(self) -> bool:
        """Whether results are persisted before they are sent."""
        return self._journal.writable

    # --- calls -------------------------------------------------------------------------------------------------------

    def submit(
        self, session: Session, request: ToolCall | PreparedCall, port: CallPort, *, tool: Tool | None = None
    ) -> RunningCall | ToolResult | None:
        """Accept one call. ``tool``: the tool to run, if the call is a method of the transport and not a tool of a
        toolset.
        Returns the accepted call, which runs from now on and is answered through ``port``; or a result that the
        transport sends at once (a refusal, or the stored result of a finished call); or None if the call is already
        running under the same request id: its one answer is still to come.
        Never raises, whatever a caller has sent.
        """
        received = self._clock()
        prepared: PreparedCall | None = None
        if isinstance(request, PreparedCall):
            prepared, request = request, request.request
        try:
            key = request_key(request.request_id)
            try:
                if tool is None:
                    tool = self.catalog.find_tool(session.toolset, request.name, usable=session.usable)
                arguments = (
                    self.catalog.bind(tool, request.arguments)
                    if prepared is None
                    else prepared.arguments_of(tool, self.catalog)
                )
            except CallError:
                # A call that was accepted earlier keeps its one answer, even if its tool has been removed or changed.
                state = session.calls.classify(key, request.name, request, received)
                if state in {RequestIdState.NEW, RequestIdState.FULL}:
                    raise
                return replay(state, session, key, received)
            state = session.calls.register(key, tool.name, request, received)
            if state is not RequestIdState.NEW:
                return replay(state, session, key, received)
            if session.stored:
                self.sessions.call_accepted(session, key)
            self._admit(session, tool, key, request.frame_bytes)
        except CallError as error:
            return self.refuse(session, request, error, received, tool)
        timeout_s, lowered = timeout_s_of(
            request.timeout_ms, tool.timeout_s or self.limits.default_timeout_s, self.limits.max_timeout_s
        )
        was_former = session.former
        call = make_call(
            call_id=self._next_id(),
            key=key,
            session=session,
            request=request,
            tool=tool,
            arguments=arguments,
            port=port,
            permits=self.permits,
            started=received,
            deadline=received + timeout_s,
            timeout_lowered=lowered,
        )
        if session.former and not was_former:
            self.sessions.became_former(session)
        call.counts_at_nodes = self._quotas.active and self._quotas.shared is not None
        self._execution.begin(call)
        return call

    def refuse_frame(self, session: Session, request_id: RequestId, error: ToolError) -> ToolResult:
        """The answer to an invalid frame with a request id; it is recorded like a call."""
        result = ToolResult(Metadata(0.0, Timings()), error=error)
        self._recorder.call_refused(
            session, ToolCall(request_id, "", {}), result, call_id=self._next_id(), summary=None
        )
        return result

    def status_of(self, session: Session, request_id: RequestId) -> CallStatus:
        """The status of a session's request id, as far as it is in memory."""
        return session.calls.status(request_key(request_id), self._clock())

    def refuse(
        self, session: Session, request: ToolCall, error: CallError, received: float, tool: Tool | None = None
    ) -> ToolResult:
        """Record that a call is refused, and return its answer. ``received`` is a time of the clock."""
        result = refused(error, received, typed=UNSET if tool is None else tool.typed)
        self._recorder.call_refused(session, request, result, call_id=self._next_id(), summary=error_summary(error))
        return result

    async def statuses_of(self, session: Session, request_ids: Sequence[RequestId]) -> list[CallStatus]:
        """The statuses of a session's request ids, from memory and the database.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        keys = [request_key(request_id) for request_id in request_ids]
        statuses = await self.sessions.statuses(session, keys)
        return [statuses[key] for key in keys]

    def running_call(self, session: Session, request_id: RequestId) -> RunningCall | None:
        """A session's unanswered call with this request id."""
        return self._unanswered.find(session, request_key(request_id))

    def result_of(self, session: Session, request_id: RequestId) -> ToolResult | None:
        """The cached result of a session's finished call."""
        return session.calls.result(request_key(request_id), self._clock())

    def result_bytes(self, session: Session, request_id: RequestId) -> int:
        """The size of the cached result of a session's finished call; 0 if there is none."""
        return session.calls.result_bytes(request_key(request_id))

    def acknowledge(self, session: Session, request_ids: Iterable[RequestId]) -> None:
        """Delete these results, because their client has them."""
        acknowledged = session.calls.acknowledge(map(request_key, request_ids))
        if acknowledged and session.resumable:
            self._journal.acknowledged(session, acknowledged)

    def cancel(self, session: Session, key: str) -> bool:
        """End a session's running call at its caller's request. Returns False if no such call is running."""
        call = self._unanswered.find(session, key)
        if call is None:
            return False
        self._execution.end(call, EndReason.CALLER)
        return True

    async def cancel_by_operator(self, call_id: str) -> bool:
        """End the call with this id (``RunningCall.id``), of any session. Returns False if no such call is running or
        paused.

        Raises:
            ServiceUnavailableError: the database cannot be read or written.
        """
        for call in self.calls:
            if call.id == call_id:
                self._execution.end(call, EndReason.OPERATOR)
                return True
        return await self._execution.paused.cancel(call_id, None)

    # --- connections -------------------------------------------------------------------------------------------------

    def connect(self, session: Session, port: CallPort) -> tuple[CallPort | None, list[PendingResult]]:
        """Give the session to a connection: from now on, running calls are answered through its port.

        Returns the port that held the session until now, if any, and the cached answers that the client may have
        missed.
        """
        superseded = self.sessions.hold(session, port)
        now = self._clock()
        missed = list(session.calls.retained(now))
        calls = self._unanswered.of_session(session)
        for call in calls:
            call.port = port
            if now - call.last_progress_at > self.limits.progress_window_s:
                call.last_progress = None
        if calls:
            self.heartbeats.send(port, calls, now)
            self.questions.ask_again(calls)
        return superseded, missed

    def disconnect(self, session: Session, port: CallPort) -> None:
        """Release the session of a closed connection and end the calls that must not outlive it, unless another
        connection took the session over."""
        calls = self._unanswered.of_session(session)
        if not self.sessions.release(session, port):
            return
        for call in calls:
            call.port = session.absent_port
            if call.ends_with_connection:
                self._execution.end(call, EndReason.DISCONNECT)

    # --- the daemon's life -------------------------------------------------------------------------------------------

    async def load_detached(self) -> None:
        """Load the detached calls that the previous process left unfinished.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        await self._execution.detached.load()

    async def resume_detached(self) -> None:
        """Resume the calls that ``load_detached`` found, once their tools are available."""
        await self._execution.detached.resume(self._epoch)

    async def close(self, reason: str, grace_s: float) -> None:
        """Stop accepting calls, let running ones finish for ``grace_s`` seconds, then end and answer the rest."""
        self._closed = reason
        self._execution.detached.suspend()
        await self._unanswered.wait_idle(grace_s)
        for call in self.calls:
            self._execution.end(call, EndReason.SHUTDOWN)
        await self._unanswered.wait_idle(STUCK_S / 2)
        for call in self.calls:
            self._execution.force_answer(call)
        await self._unanswered.wait_idle(STUCK_S / 2)
        await self.sessions.persist_results()

    # --- internals ---------------------------------------------------------------------------------------------------

    def _admit(self, session: Session, tool: Tool, key: str, size: int) -> None:
        """Admit a new call, or withdraw it.

        Raises:
            CallError: it is refused.
        """
        principal = session.principal.name
        permit_free = session.permits.free(principal) and self.permits.free(principal)
        if permit_free and size <= UNCOUNTED_BYTES and not (tool.orchestration or self._closed or self._quotas.active):
            return  # the usual case
        waiting = 0 if permit_free else self.waiting
        # Counting the principal's waiting calls is slow, so it is done only if they may exceed its share.
        counts = self.permits.keeps_reserve and waiting >= waiting_share(self.limits.max_waiting)
        refusal = admission_refusal(
            tool,
            self.limits,
            closed=self._closed,
            permit_free=permit_free,
            waiting=waiting,
            own_waiting=self._unanswered.waiting_of(principal) if counts else 0,
            orchestrations=self._unanswered.orchestrations_of(session) if tool.orchestration else 0,
            exceeded=self.requests.exceeded(session, size) if size > UNCOUNTED_BYTES else None,
        )
        if refusal is None and self._quotas.active and self._quotas.shared is None:
            refusal = self._quotas.refusal(tool.name, principal)
        if refusal is not None:
            session.calls.withdraw(key)
            raise refusal

    def _next_id(self) -> str:
        return f"{self._epoch}-{next(self._ids):x}"
