"""Detached calls: they run independently of the call that created them, and resume after a restart (decision 40).

Each detached call has a separate session, and its principal resumes the session with the call id. So its result is
cached, limited and deleted like every other result. Its request stays in the database until the call ends.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
import structlog

from ...fairness import Permits
from ...protocol.error_codes import CallError, OutcomeUnknownError, ServiceUnavailableError
from ...protocol.frame_decoding import request_key
from ...protocol.session_registry import hash_key
from ...protocol.tool_call import ClientInfo, Json, Principal, ToolCall, stored_principal
from ...protocol.trace_context import current_traceparent
from ...store import A2ATaskRow, SessionHeldError, StoredDetachedCall
from ...tools import BoundArguments, Tool, ToolCatalog
from ..observability.logging_setup import error_text
from .admission import limited_call, requests_exceed, too_many_detached
from .call_creation import make_call
from .call_phase import EndReason
from .call_preparation import PreparedCall
from .child_calls import CallRunner, ParentPort
from .dispatch_limits import DispatchLimits
from .held_bytes import UNCOUNTED_BYTES, HeldBytes
from .recording_ports import JournalPort
from .result_ports import DetachedPort
from .running_call import ChildScope, RunningCall, Session
from .session_manager import SessionManager
from .unanswered_calls import UnansweredCalls

REQUEST_ID: Final = "call"
"""The request id of the one call of such a session."""
MIN_RESUMED_S: Final = 30.0
"""The minimum time of a resumed call, so that it can report the completed work."""
TRANSPORT: Final = "detached"

_log = structlog.get_logger(__name__)


class DetachedCalls:
    """Starts detached calls, suspends them at shutdown and resumes them at the next start."""

    def __init__(
        self,
        *,
        runner: CallRunner,
        unanswered: UnansweredCalls,
        sessions: SessionManager,
        journal: JournalPort,
        catalog: Callable[[], ToolCatalog],
        limits: Callable[[], DispatchLimits],
        permits: Permits,
        requests: HeldBytes,
        next_id: Callable[[], str],
    ) -> None:
        self._runner = runner
        self._unanswered = unanswered
        self._sessions = sessions
        self._journal = journal
        self._catalog = catalog
        self._limits = limits
        self._permits = permits
        self._requests = requests
        self.next_id = next_id
        self.port = DetachedPort()
        self.waiting: dict[str, StoredDetachedCall] = {}
        """Calls of the previous process that have not been resumed yet, by id."""
        self.suspended: dict[str, RunningCall] = {}
        """Calls that this process stops for its shutdown, by id."""
        # Calls whose start is being written, by principal.
        self._starting: Counter[str] = Counter()
        # Referenced so that they are not collected.
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closing = False

    def __repr__(self) -> str:
        running = sum(call.detached for call in self._unanswered.all)
        return f"<DetachedCalls running={running} waiting={len(self.waiting)}>"

    async def detach(self, parent: RunningCall, changed: Mapping[str, Json], timeout_s: float) -> str:
        """Implements ``OrchestrationContext.detach``."""
        if parent.detached:
            raise RuntimeError("a detached call cannot be detached again")
        if _is_limited(parent):
            raise limited_call()
        # Shielded: a call whose start was written must be started, even if the caller is cancelled.
        return await asyncio.shield(self._spawn(self._start(parent, changed, timeout_s)))

    async def load(self) -> None:
        """Load the calls that the previous process left unfinished.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        self.waiting |= {stored.call_id: stored for stored in await self._journal.detached_calls()}

    async def resume(self, epoch: str) -> None:
        """Resume the loaded calls. A call whose tool is missing waits for the next start."""
        for stored in list(self.waiting.values()):
            if self._closing:
                return
            try:
                await self._resume(stored, epoch)
            except SessionHeldError:
                self.waiting.pop(stored.call_id, None)  # another node has adopted it
            except CallError as error:
                _log.warning(
                    "detached call cannot be resumed", call=stored.call_id, tool=stored.tool, reason=error_text(error)
                )

    def suspend(self) -> None:
        """At shutdown: start no further calls. Each call is stopped once its running children have ended."""
        self._closing = True
        for call in self._unanswered.all:
            if call.detached:
                self._suspend(call)

    async def _start(self, parent: RunningCall, changed: Mapping[str, Json], timeout_s: float) -> str:
        creator, tool = parent.session, parent.tool
        scope = parent.child_scope
        run = parent.id if parent.parent is None or scope is None else scope.run
        if scope is not None and scope.resumed and parent.parent is not None:
            # The detached call may already exist, if the daemon ended between its start and the end of this child call.
            earlier = await self._journal.find_run(run, creator.principal, tool.name)
            if earlier is not None:
                return earlier
        self._check_room(creator.principal)
        arguments = {**parent.request.arguments, **changed}
        bound = self._catalog().bind(tool, arguments)
        call_id = self.next_id()
        session = self._open_session(creator, call_id)
        now = time.monotonic()
        request = ToolCall(REQUEST_ID, tool.name, arguments, traceparent=current_traceparent.get())
        call = self._make_call(call_id, session, request, tool, bound, started=now, deadline=now + timeout_s)
        call.creator = run
        await self._persist_and_begin(call, None)
        return call_id

    async def submit(
        self, session: Session, request: ToolCall | PreparedCall, call_id: str, *, timeout_s: float, task: A2ATaskRow
    ) -> None:
        """Accept a client's call that is detached from the start; returns once its start and ``task`` are persisted.

        ``session`` is new, for this call alone; if the call is refused, the session is removed. Call it in a task that
        is never cancelled.

        Raises:
            CallError: it is refused.
        """
        catalog, now = self._catalog(), time.monotonic()
        prepared, request = (request, request.request) if isinstance(request, PreparedCall) else (None, request)
        try:
            tool = catalog.find_tool(session.toolset, request.name, usable=session.usable)
            bound = prepared.arguments_of(tool, catalog) if prepared else catalog.bind(tool, request.arguments)
            size = request.frame_bytes
            if size > UNCOUNTED_BYTES and (exceeded := self._requests.exceeded(session, size)) is not None:
                raise requests_exceed(exceeded)
            self._check_room(session.principal)
            self._sessions.make_resumable(session, hash_key(call_id))
            call = self._make_call(call_id, session, request, tool, bound, started=now, deadline=now + timeout_s)
            await self._persist_and_begin(call, task)
        except CallError:
            self._sessions.unload(session)
            raise

    def _check_room(self, principal: Principal) -> None:
        if self._closing:
            raise ServiceUnavailableError.content_free(
                "The daemon is shutting down; send the call again later.", executed="no"
            )
        limit = self._limits().max_detached
        if self._count(principal) >= limit:
            raise too_many_detached(limit)

    async def _persist_and_begin(self, call: RunningCall, task: A2ATaskRow | None) -> None:
        name = call.session.principal.name
        self._starting[name] += 1
        try:
            if not await self._journal.start_call(call, replace=False, task=task):
                raise OutcomeUnknownError
        except CallError:
            call.session.calls.withdraw(call.key)
            raise
        finally:
            self._starting[name] -= 1
        self._begin(call)

    async def resume_call(self, stored: StoredDetachedCall) -> None:
        """Run a paused call again. If that is impossible now, the call waits for the next start."""
        self.waiting[stored.call_id] = stored
        if self._closing:
            return
        try:
            await self._resume(stored, self.next_id().replace("-", ""))
        except SessionHeldError:
            self.waiting.pop(stored.call_id, None)  # another node continues it
        except CallError as error:
            _log.warning("paused call cannot continue", call=stored.call_id, tool=stored.tool, reason=error_text(error))

    def argument_problem(self, stored: StoredDetachedCall, tool_name: str, arguments: dict[str, Json]) -> str | None:
        """The reason why arguments do not fit a tool of the call's toolset; None if they fit, or if the tool no longer
        exists.

        Whether the call may use the tool (``ChildOptions.within``) is decided when it makes the child call, because
        narrowing a toolset removes tools but does not change their arguments.
        """
        try:
            tool = self._catalog().find_tool(stored.session.toolset, tool_name)
        except CallError:
            return None
        try:
            self._catalog().bind(tool, arguments)
        except CallError as error:
            return error.message
        return None

    def successor(self, call: RunningCall, timeout_s: float) -> RunningCall:
        """A detached call that continues a client's call: the same principal, tools, arguments and run. It is not
        started.
        """
        call_id, now = self.next_id(), time.monotonic()
        successor = self._make_call(
            call_id,
            self._open_session(call.session, call_id),
            ToolCall(REQUEST_ID, call.tool.name, call.request.arguments, traceparent=current_traceparent.get()),
            call.tool,
            call.arguments,
            started=now,
            deadline=now + timeout_s,
        )
        successor.creator = call.id
        if successor.child_scope is not None and call.child_scope is not None:
            successor.child_scope.run = call.child_scope.run
        return successor

    def unload(self, session: Session) -> None:
        """Remove the session of a paused call from memory; the database has it."""
        self._sessions.unload(session)

    def unload_key(self, key_hash: bytes, principal: str) -> None:
        """``unload`` for a call by its session's key, if the session is in memory."""
        session = self._sessions.loaded(key_hash, principal)
        if session is not None:
            self._sessions.unload(session)

    async def _resume(self, stored: StoredDetachedCall, id_suffix: str) -> None:
        principal = stored_principal(stored.session.principal)
        tool = self._catalog().find_tool(stored.session.toolset, stored.tool)
        arguments = msgspec.json.decode(stored.arguments)
        bound = self._catalog().bind(tool, arguments)
        session = await self._sessions.find(
            stored.session.key_hash, principal, transport=TRANSPORT, absent_port=self.port
        )
        if session is None:
            raise ServiceUnavailableError.content_free("Its session is not in the database.")
        await self.port.resuming(stored.call_id)
        if self.waiting.pop(stored.call_id, None) is None:
            return  # the start of this process, or a request for the call, has resumed it meanwhile
        session.usable = (session.toolset,)  # the principal's other toolsets are not stored
        session.client = msgspec.json.decode(stored.client, type=ClientInfo)
        now, at = time.monotonic(), time.time()
        call = self._make_call(
            stored.call_id,
            session,
            ToolCall(REQUEST_ID, tool.name, arguments, traceparent=stored.traceparent),
            tool,
            bound,
            started=now - (at - stored.started_at),
            started_at=stored.started_at,
            deadline=now + max(MIN_RESUMED_S, stored.deadline_at - at),
        )
        scope = call.child_scope
        if scope is not None:
            scope.resumed, scope.id_suffix, scope.run = True, f"~{id_suffix}", stored.run or scope.run
            scope.decisions = {each.request.id: each.decision for each in stored.requests if each.decision is not None}
        self._begin(call)
        self.port.changed(call.id)
        _log.info("detached call resumed", call=stored.call_id, tool=tool.name)

    def _open_session(self, creator: Session, call_id: str) -> Session:
        return self._sessions.open(
            creator.label,
            stored_principal(creator.principal.name),
            creator.client,
            toolset=creator.toolset,
            transport=TRANSPORT,
            streaming=False,
            absent_port=self.port,
            usable=creator.usable,
            key_hash=hash_key(call_id),
        )

    def _make_call(
        self,
        call_id: str,
        session: Session,
        request: ToolCall,
        tool: Tool,
        bound: BoundArguments,
        *,
        started: float,
        deadline: float,
        started_at: float | None = None,
    ) -> RunningCall:
        """The accepted call, in a session without a connection."""
        key = request_key(REQUEST_ID)
        session.calls.register(key, tool.name, request, time.monotonic())
        self._sessions.hold(session, self.port)
        self._sessions.release(session, self.port)
        return make_call(
            call_id=call_id,
            key=key,
            session=session,
            request=request,
            tool=tool,
            arguments=bound,
            port=self.port,
            permits=self._permits,
            started=started,
            started_at=started_at,
            deadline=deadline,
            detached=True,
        )

    def _count(self, principal: Principal) -> int:
        running = sum(call.detached and call.session.principal == principal for call in self._unanswered.all)
        waiting = sum(stored.session.principal == principal.name for stored in self.waiting.values())
        return running + waiting + self._starting[principal.name]

    def _begin(self, call: RunningCall) -> None:
        self._runner.begin(call)
        if self._closing:  # the shutdown began after the call was admitted
            self._suspend(call)

    def _suspend(self, call: RunningCall) -> None:
        if call.child_scope is not None:
            self.suspended[call.id] = call
            call.child_scope.suspended = True
            self._spawn(self._stop(call, call.child_scope))

    async def _stop(self, call: RunningCall, scope: ChildScope) -> None:
        while scope.active:
            ports = [child.port for child in scope.active]
            await asyncio.wait([port.answer for port in ports if isinstance(port, ParentPort)])
        self._runner.end(call, EndReason.SHUTDOWN)

    def _spawn(self, work: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # retrieve the exception, so that asyncio does not log it if the caller is cancelled


def _is_limited(call: RunningCall) -> bool:
    """Whether a parent limits this call: an agent, or a call that restricts its tools or limits its spending."""
    outer, scope = call.parent, call.parent_scope
    if outer is None or scope is None:
        return False
    return bool(scope.nesting.agents) or call.within is not None or outer.run_budget is not None
