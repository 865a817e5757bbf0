"""Detached calls: they run apart from whoever made them, and go on at the next start of the daemon.

A detached call is a session of one call (decision 40): its id is the key to it, for its principal. So its result is
kept, bounded and forgotten as every other. What it was asked for is on the disk until it ends.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
import structlog

from ...protocol.error_codes import CallError, OutcomeUnknownError, ServiceUnavailableError
from ...protocol.frame_decoding import request_key
from ...protocol.session_registry import hash_key
from ...protocol.tool_call import ClientInfo, Json, Principal, ToolCall, ToolResult, encode_result
from ...store import StoredDetachedCall
from ...tools import Tool, ToolCatalog, bind
from .admission import detached_enough
from .child_calls import ChildRunner, ParentPort, family_of
from .dispatch_limits import DispatchLimits
from .permits import Permits, RunPermit
from .recording_ports import JournalPort
from .running_call import ChildScope, DetachedPort, EndReason, RunningCall, Session, UsageMeter
from .session_manager import SessionManager

CALL: Final = "call"
"""The request id of the one call that a session has here."""
LEAST_S: Final = 30.0
"""A call that goes on after a restart has at least so long, to tell what was done before and after it."""
TRANSPORT: Final = "detached"

_log = structlog.get_logger(__name__)


class DetachedCaller(DetachedPort):
    """The ``CallPort`` of what nobody waits for."""

    def render(self, _running: RunningCall, result: ToolResult) -> bytes:
        return encode_result(result)


NOBODY: Final = DetachedCaller()


class DetachedCalls:
    """Begins them, has them stop in good order, and lets them go on."""

    def __init__(
        self,
        runner: ChildRunner,
        sessions: SessionManager,
        journal: JournalPort,
        *,
        offer: Callable[[], ToolCatalog],
        bounds: Callable[[], DispatchLimits],
        permits: Permits,
        next_id: Callable[[], str],
    ) -> None:
        self._runner = runner
        self._sessions = sessions
        self._journal = journal
        self._offer = offer
        self._bounds = bounds
        self._permits = permits
        self._next_id = next_id
        self.waiting: dict[str, StoredDetachedCall] = {}
        """What the process before this one left to go on, and does not yet."""
        # Whose are being written down; the tasks of that and of their stopping, held so that they are not collected.
        self._beginning: Counter[str] = Counter()
        self._work: set[asyncio.Task[Any]] = set()
        self._closing = False

    def __repr__(self) -> str:
        running = sum(one.detached for one in self._runner.running)
        return f"<DetachedCalls running={running} waiting={len(self.waiting)}>"

    async def detach(self, parent: RunningCall, changed: Mapping[str, Json], timeout_s: float) -> str:
        """``OrchestrationContext.detach``."""
        if parent.detached:
            raise RuntimeError("a detached call cannot be detached again")
        # Whoever stops waiting in the middle must not leave one that is written down and does not run.
        return await asyncio.shield(self._spawn(self._begin(parent, changed, timeout_s)))

    async def recall(self) -> None:
        """Look what the process before this one left to go on.

        Raises:
            ServiceUnavailableError: the disk does not say.
        """
        self.waiting = {kept.call_id: kept for kept in await self._journal.detached_calls()}

    async def go_on(self, epoch: str) -> None:
        """Begin what was left. What cannot go on now, since its tool is not there, waits for the next start."""
        for kept in list(self.waiting.values()):
            if self._closing:
                return
            try:
                await self._go_on(kept, epoch)
            except CallError as error:
                _log.warning("a detached call cannot go on", call=kept.call_id, tool=kept.tool, reason=error.message)

    def hold(self) -> None:
        """The daemon goes down: begin nothing more. Each is stopped as soon as all that it has begun has ended."""
        self._closing = True
        for running in self._runner.running:
            if running.detached:
                self._hold(running)

    async def _begin(self, parent: RunningCall, changed: Mapping[str, Json], timeout_s: float) -> str:
        made_in, tool, most = parent.session, parent.tool, self._bounds().max_detached
        if self._closing:
            raise ServiceUnavailableError("The daemon is going down; send the call again later.", executed="no")
        if self._count(made_in.principal) >= most:
            raise detached_enough(most)
        arguments = {**parent.call.arguments, **changed}
        bound = bind(tool, arguments)
        call_id = self._next_id()
        session = self._sessions.open(
            made_in.label,
            made_in.principal,
            made_in.client,
            toolset=made_in.toolset,
            transport=TRANSPORT,
            streaming=False,
            away=NOBODY,
            usable=made_in.usable,
            key_hash=hash_key(call_id),
        )
        now = time.monotonic()
        call = ToolCall(CALL, tool.name, arguments)
        running = self._made(call_id, session, call, tool, bound, started=now, deadline=now + timeout_s)
        self._beginning[made_in.principal.name] += 1
        try:
            if not await self._journal.start(running):
                raise OutcomeUnknownError
        except CallError:
            session.calls.withdraw(running.key)
            raise
        finally:
            self._beginning[made_in.principal.name] -= 1
        self._run(running)
        return call_id

    async def _go_on(self, kept: StoredDetachedCall, epoch: str) -> None:
        principal = Principal(kept.session.principal)
        tool = self._offer().find(kept.session.toolset, kept.tool)
        arguments = msgspec.json.decode(kept.arguments)
        bound = bind(tool, arguments)
        session = await self._sessions.find(kept.session.key_hash, principal, transport=TRANSPORT, away=NOBODY)
        if session is None:
            raise ServiceUnavailableError("Its session is not in the database.")
        session.usable = (session.toolset,)  # what its principal may use beside is not on the disk
        session.client = msgspec.json.decode(kept.client, type=ClientInfo)
        now, at = time.monotonic(), time.time()
        running = self._made(
            kept.call_id,
            session,
            ToolCall(CALL, tool.name, arguments),
            tool,
            bound,
            started=now - (at - kept.started_at),
            deadline=now + max(LEAST_S, kept.deadline_at - at),
        )
        running.started_at = kept.started_at
        if running.family is not None:
            running.family.earlier, running.family.mark = True, f"~{epoch}"
        self._run(running)
        del self.waiting[kept.call_id]
        _log.info("a detached call goes on", call=kept.call_id, tool=tool.name)

    def _made(
        self,
        call_id: str,
        session: Session,
        call: ToolCall,
        tool: Tool,
        bound: Any,
        *,
        started: float,
        deadline: float,
    ) -> RunningCall:
        """The call, entered into its session's book, which nobody holds."""
        now, key = time.monotonic(), request_key(CALL)
        session.calls.accept(key, tool.name, call.arguments, now)
        self._sessions.take(session, NOBODY)
        self._sessions.leave(session, NOBODY)
        return RunningCall(
            id=call_id,
            key=key,
            session=session,
            call=call,
            tool=tool,
            arguments=bound,
            port=NOBODY,
            permit=RunPermit(session.permits, self._permits),
            family=family_of(tool, call_id),
            meter=UsageMeter(),
            started=started,
            started_at=time.time(),
            deadline=deadline,
            timeout_lowered=False,
            last_report=now,
            detached=True,
        )

    def _count(self, principal: Principal) -> int:
        running = sum(one.detached and one.session.principal == principal for one in self._runner.running)
        waiting = sum(one.session.principal == principal.name for one in self.waiting.values())
        return running + waiting + self._beginning[principal.name]

    def _run(self, running: RunningCall) -> None:
        self._runner.begin(running)
        if self._closing:  # since it was let in
            self._hold(running)

    def _hold(self, running: RunningCall) -> None:
        if running.family is not None:
            running.family.on_hold = True
            self._spawn(self._stop(running, running.family))

    async def _stop(self, running: RunningCall, family: ChildScope) -> None:
        while family.running:
            ports = [child.port for child in family.running]
            await asyncio.wait([port.answer for port in ports if isinstance(port, ParentPort)])
        self._runner.end(running, EndReason.SHUTDOWN)

    def _spawn(self, work: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._settled)
        return task

    def _settled(self, task: asyncio.Task[Any]) -> None:
        self._work.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waits is told; if nobody does, it is no news to the loop
