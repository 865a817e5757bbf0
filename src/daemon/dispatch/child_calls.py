"""Calls that calls make. A child goes the road of every call; what is its own is here: whose it is, under which id,
within whose time, and what is known of it from a run before (decision 33).

    resolve ▸ bind ▸ replay ▸ admit, then ``execution``; no frame comes in, and its answer goes to its parent.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from msgspec.structs import replace

from ...protocol.error_codes import (
    CallError,
    NotFoundError,
    OutcomeUnknownError,
    RequestIdConflictError,
    ResultExpiredError,
)
from ...protocol.session_calls import arguments_digest
from ...protocol.tool_call import (
    Json,
    Metadata,
    Progress,
    Timings,
    ToolCall,
    ToolResult,
    encode_result,
)
from ...store import StoredCall
from ...tools import CHILD_NAME, Tool, ToolCatalog, ToolsetView, bind
from . import call_outcome
from .admission import child_refusal, deadline_s
from .dispatch_limits import DispatchLimits
from .permits import Permits, RunPermit
from .recording_ports import JournalPort, RecorderPort
from .running_call import MESSAGE_CHARS, ChildScope, EndReason, RunningCall, Session, UsageMeter

_SHOWN_ID_CHARS: Final = 80


class ChildRunner(Protocol):
    """What runs calls: ``execution.Execution``."""

    @property
    def running(self) -> Iterable[RunningCall]: ...

    def begin(self, running: RunningCall) -> None: ...

    def end(self, running: RunningCall, ended_by: EndReason) -> None: ...


def family_of(tool: Tool, call_id: str, parent: RunningCall | None = None, name: str = "") -> ChildScope | None:
    """What a new call of this tool has to do with calls of its own; None where the tool makes none.

    A child's run is its parent's and its name: what took the parent up has taken up the child.
    """
    if not tool.orchestration:
        return None
    kin = parent.family if parent else None
    return ChildScope(
        run=f"{kin.run}/{name}" if kin else call_id,
        earlier=kin.earlier if kin else False,
        depth=kin.depth + 1 if kin else 1,
        names=set(),
        running=set(),
        meter=UsageMeter(),
    )


class ParentPort:
    """The ``CallPort`` of a child: its answer is what its parent waits for, its reports are its parent's."""

    __slots__ = ("_parent", "_result", "answer")

    def __init__(self, parent: RunningCall) -> None:
        self._parent = parent
        self._result: ToolResult | None = None
        self.answer: asyncio.Future[ToolResult] = asyncio.get_running_loop().create_future()

    def render(self, _running: RunningCall, result: ToolResult) -> bytes:
        self._result = result
        return encode_result(result)

    async def deliver(self, _running: RunningCall, _answer: bytes) -> None:
        if self._result is not None:
            self.answer.set_result(self._result)

    def progress(self, running: RunningCall, progress: Progress) -> bool:
        message = f"{running.key}: {progress.message}"[:MESSAGE_CHARS]
        return self._parent.report(replace(progress, message=message), time.monotonic())

    def chunk(self, running: RunningCall, text: str) -> None:
        """A piece of a child's answer is none of its parent's."""

    def beat(self, running: Iterable[RunningCall], now: float) -> None:
        """Its parent is told of."""


class ChildCalls:
    """Makes the calls of calls."""

    def __init__(
        self,
        runner: ChildRunner,
        offer: Callable[[], ToolCatalog],
        bounds: Callable[[], DispatchLimits],
        permits: Permits,
        recorder: RecorderPort,
        journal: JournalPort,
    ) -> None:
        self._offer = offer
        self._runner = runner
        self._bounds = bounds
        self._permits = permits
        self._recorder = recorder
        self._journal = journal

    def find_tool(self, session: Session, name: str) -> Tool:
        """``LookupContext.find_tool``."""
        return self._offer().find(session.toolset, name, usable=session.usable)

    def toolset_view(self, session: Session) -> ToolsetView:
        """``LookupContext.toolset_view``."""
        return self._offer().of(session.toolset)

    async def call(
        self,
        parent: RunningCall,
        family: ChildScope,
        tool_name: str,
        arguments: Mapping[str, Json],
        name: str,
        timeout_s: float | None,
    ) -> ToolResult:
        """``OrchestrationContext.call``."""
        if family.on_hold:
            await asyncio.get_running_loop().create_future()  # until this call is cancelled
        _add_name(parent, family, name)
        received = time.monotonic()
        call = ToolCall(name, tool_name, dict(arguments), None if timeout_s is None else timeout_s * 1000)
        port = ParentPort(parent)
        try:
            running = self._admitted(parent, family, call, port, received)
        except CallError as error:
            return self._refuse(parent, call, error, received)
        try:
            kept = await self._earlier(running) if family.earlier and not running.tool.local else None
        except CallError as error:
            return call_outcome.replayed(self._refuse(parent, call, error, received))
        if kept is not None:
            return kept
        self._runner.begin(running)
        try:
            return await asyncio.shield(port.answer)
        except asyncio.CancelledError:
            self._runner.end(running, EndReason.PARENT)
            await asyncio.wait([port.answer])  # a tool that does not end is answered for, too
            raise

    def max_answer_bytes(self, running: RunningCall) -> int:
        """``LookupContext.max_answer_bytes``: what a child answers is not sent, however large it is."""
        return self._bounds().answer_bytes if running.parent is None else sys.maxsize

    async def over(self, parent: RunningCall, family: ChildScope) -> None:
        """The parent's tool has returned: those of its children that run are ended, and waited for."""
        family.over = True
        running = tuple(family.running)
        for child in running:
            self._runner.end(child, parent.ended_by or EndReason.PARENT)
        answers = [child.port.answer for child in running if isinstance(child.port, ParentPort)]
        if answers:
            await asyncio.wait(answers)

    async def resume(self, parent: RunningCall, family: ChildScope, call_id: str) -> None:
        """``OrchestrationContext.resume``."""
        if family.names:
            raise RuntimeError("a call resumes another one before its first child call")
        run = await self._journal.find_run(call_id, parent.session.principal, parent.tool.name)
        if run is None:
            raise NotFoundError(
                f"There is no earlier call {call_id[:_SHOWN_ID_CHARS]!r} of {parent.tool.name} to go on with: it is "
                "not known any more, or is somebody else's; leave it out to begin anew."
            )
        for other in self._runner.running:
            if other is not parent and other.family is not None and other.family.run == run:
                raise RequestIdConflictError(
                    f"The call {other.id} is still at it; wait for its answer, or cancel it, and go on with it then."
                )
        family.run, family.earlier = run, True  # before anything is awaited: nobody else may take it up as well
        await self._journal.resume_run(parent, run)

    def _admitted(
        self, parent: RunningCall, family: ChildScope, call: ToolCall, port: ParentPort, received: float
    ) -> RunningCall:
        """The child, ready to run.

        Raises:
            CallError: it is not to run.
        """
        session, bounds = parent.session, self._bounds()
        tool = self.find_tool(session, call.name)
        depth = family.depth + 1 if tool.orchestration else 0
        most = sys.maxsize if parent.detached else bounds.max_children
        refusal = child_refusal(len(family.names), depth, max_children=most, max_depth=bounds.max_depth)
        if refusal is not None:
            raise refusal
        bound = bind(tool, call.arguments)
        name = str(call.request_id)
        own_s, lowered = deadline_s(call.timeout_ms, tool.timeout_s or bounds.default_timeout_s, bounds.max_timeout_s)
        call_id = _id(parent, name)
        return RunningCall(
            id=call_id,
            key=name,
            session=session,
            call=call,
            tool=tool,
            arguments=bound,
            port=port,
            permit=RunPermit(session.permits, self._permits),
            parent=parent,
            family=family_of(tool, call_id, parent, name),
            meter=UsageMeter(),
            started=received,
            started_at=time.time(),
            deadline=min(parent.deadline, received + own_s),
            timeout_lowered=lowered,
            last_report=received,
        )

    async def _earlier(self, running: RunningCall) -> ToolResult | None:
        """What a run that was taken up has of this child; None where it is to run.

        Raises:
            CallError: it is not to run, and there is no result.
        """
        known = await self._journal.earlier_child(running)
        if known is None:
            return None
        running.again = True
        return earlier_result(known, running.tool, arguments_digest(running.call.arguments))

    def _refuse(self, parent: RunningCall, call: ToolCall, error: CallError, received: float) -> ToolResult:
        latency_ms = round((time.monotonic() - received) * 1000, 3)
        result = ToolResult(Metadata(latency_ms, Timings()), error=error.to_tool_error())
        self._recorder.refused(parent.session, call, result, call_id=_id(parent, str(call.request_id)))
        return result


def earlier_result(known: StoredCall, tool: Tool, arguments_hash: bytes) -> ToolResult | None:
    """What a child that ran in a run before is answered with; None where it may and has to run again.

    A failure is told whatever its arguments were: what goes on with a run may have mended them.

    Raises:
        RequestIdConflictError: it was another call, and has a result.
        OutcomeUnknownError: it was cut off, and may have had its effect.
        ResultExpiredError: it has run, and its result is gone.
    """
    result = call_outcome.stored_result(known)
    if result is not None:
        if result.ok and (known.tool != tool.name or known.arguments_hash != arguments_hash):
            raise RequestIdConflictError(
                f"The earlier run called {known.tool} here, and not with these arguments; begin a run of its own for "
                "what is to be different."
            )
        return call_outcome.replayed(result)
    # An orchestration call resumes with its own children.
    if tool.repeatable or tool.orchestration:
        return None
    if known.state == "interrupted":
        raise OutcomeUnknownError("The earlier run ended abruptly while the call ran; look whether it had its effect.")
    raise ResultExpiredError


def _id(parent: RunningCall, name: str) -> str:
    mark = parent.family.mark if parent.family else ""
    return f"{parent.id}/{name}{mark}"


def _add_name(parent: RunningCall, family: ChildScope, name: str) -> None:
    """Add the name of one more child.

    Raises:
        asyncio.CancelledError: the parent is ending.
        ValueError: the name is invalid or was used before.
    """
    if parent.ended_by is not None or family.over:
        raise asyncio.CancelledError
    if not CHILD_NAME.fullmatch(name) or name in family.names:
        raise ValueError(
            f"{name!r} cannot be a child's name: it was used before, or does not match {CHILD_NAME.pattern}"
        )
    family.names.add(name)
