"""A call from acceptance to its answer, its session, and the port that sends its answer to the caller.

``call_creation`` creates calls.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

import msgspec
from pydantic import BaseModel

from ...fairness import Permits, RunPermit
from ...protocol.input_request import CallPausedError, InputDecision
from ...protocol.questions.question_table import OpenQuestion
from ...protocol.session_registry import SessionState
from ...protocol.tool_call import (
    AnswerPiece,
    ApiResponse,
    ClientInfo,
    Json,
    PartsOutcome,
    Principal,
    Progress,
    ToolCall,
    ToolResult,
)
from ...tools import ResultText, Tool, ValueMask
from .call_phase import (
    PUBLIC_STATES,
    SUCCESSORS,
    CallPhase,
    EndReason,
    IllegalTransitionError,
    JournalRecord,
    PublicState,
)
from .nesting import Nesting
from .run_budget import RunBudget
from .usage_meter import UsageMeter

# Constants for every call, because on Python 3.11 each access to an enum member is a Python call.
_RUNNING: Final = CallPhase.RUNNING
_ENDING: Final = CallPhase.ENDING
_ANSWERED: Final = CallPhase.ANSWERED
_SHUTDOWN: Final = EndReason.SHUTDOWN

MESSAGE_CHARS: Final = 1000
"""The limit of a progress message, which people read; longer ones are truncated."""


@dataclass(slots=True, eq=False, kw_only=True)
class Session(SessionState["CallPort"]):
    """The server-side state of one client, held by the port of its connection."""

    label: str
    principal: Principal
    client: ClientInfo
    toolset: str
    """The tools that the session can list and call; it never changes."""
    usable: tuple[str, ...] | None = None
    """The other toolsets that its principal may use, for hints in errors; None: all."""
    transport: str
    """``websocket``, ``mcp`` or ``detached``; for logs and audit."""
    streaming: bool
    """Whether the client reads chunks."""
    permits: Permits
    absent_port: "CallPort"
    """The port of its calls' answers while no connection holds the session."""
    journalled: bool = False
    """Whether at least one of its calls was written to the journal."""
    result_text: ResultText | None = None
    """The form of conversational answers that its client has requested."""
    former: bool = False
    """Whether its client was written for an earlier server: a call used a former argument name, or the connection shows
    it.
    """
    noticed: set[str] = field(default_factory=set)
    """Notices about arguments that were already in the text of an answer of this session."""
    stored: set[str] = field(default_factory=set)
    """The keys of calls that were not journalled, but whose answers may be in the database."""


class ChildScope(msgspec.Struct, eq=False, kw_only=True):
    """The child calls of one orchestration call."""

    run: str
    """The key under which the journal stores the children: this call's id, or the ``run`` of the earlier call that it
    resumes."""
    resumed: bool
    """Whether it resumes an earlier call, so that the journal may have some of its children."""
    nesting: Nesting
    """This call and those around it."""
    names: set[str]
    """The names of all children so far."""
    active: "set[RunningCall]"
    """The children without an answer."""
    meter: UsageMeter
    """The usage of answered children, including their own children."""
    parts: PartsOutcome | None = None
    """The outcome of its parts that its tool reported."""
    closed: bool = False
    """Set when its tool has returned: it can no longer make children."""
    suspended: bool = False
    """Set when it will be stopped for a restart: it cannot make children until it resumes."""
    id_suffix: str = ""
    """The suffix for the ids of children that it makes after a restart, so that call ids stay unique."""
    limiting: asyncio.Lock | None = None
    """Held while the daily budget of the children is being read; None once it applies, or without one."""
    decisions: Mapping[str, InputDecision] = {}
    """The decisions on requests with which it paused earlier; empty for a child, whose root has them."""

    def child_answered(self, child: "RunningCall") -> None:
        """Remove a child that has its answer, and add its usage."""
        self.active.discard(child)
        self.meter.add(child.meter)
        if child.child_scope is not None:
            self.meter.add(child.child_scope.meter)


class PreviousAnswer(NamedTuple):
    """The journal's record of an ended call."""

    result: ToolResult
    ended_at: float
    """A monotonic time."""
    started: bool
    """Whether its tool started."""


class RunningCall(msgspec.Struct, eq=False, kw_only=True):
    """One accepted call. ``started`` and ``deadline`` are monotonic times of the loop's clock, in seconds."""

    id: str
    key: str
    session: Session
    request: ToolCall
    tool: Tool
    arguments: BaseModel | dict[str, Any]
    """As ``ToolCatalog.bind`` returned them."""
    current_arguments: dict[str, Json] | None = None
    """The arguments that the tool got, if they differ from the request's because they were adapted or changed by a
    hook.
    """
    changed_by: str | None = None
    """The hook that changed the arguments."""
    result_changed_by: str | None = None
    """The hook that changed the result."""
    result_checked: bool = False
    """Whether a hook will be asked about its result, so that no part of the result is sent earlier."""
    mask: ValueMask | None = None
    """Hides the values of bound arguments, and of credentials that the tool was given."""
    argument_notices: tuple[str, ...] = ()
    port: "CallPort"
    permit: RunPermit
    parent: "RunningCall | None" = None
    """The call that made it; None for a client's call."""
    child_scope: ChildScope | None = None
    """None unless its tool is an orchestration tool."""
    within: frozenset[str] | None = None
    """The names of the tools of its toolset that it may find and call; None: all of them."""
    run_budget: RunBudget | None = None
    """The spending limit of this call or of a parent."""
    counts_at_nodes: bool = False
    """Whether it has to be counted for quotas that all nodes share."""
    journalled: bool = False
    """Whether its parent wants it in the journal even if its tool is local."""
    on_chunk: Callable[[str], None] | None = None
    """Receives the text that a child streams."""
    detached: bool = False
    """Whether it runs independently of the call that created it. Then its start was written to the journal at its
    creation, before it entered the call path.
    """
    paused: CallPausedError | None = None
    """The requests for which it waits, if its tool has paused it. It is a detached call, or its parent pauses as well.
    """
    continued_by: str | None = None
    """The id of the paused call that continues its run."""
    creator: str | None = None
    """The id of the call that created this detached call; if that is a child call, the key of its run."""
    started: float
    started_at: float
    """Unix time in seconds."""
    deadline: float
    timeout_lowered: bool
    phase: CallPhase = CallPhase.ACCEPTED
    end_reason: EndReason | None = None
    end_requested_at: float | None = None
    """Set together with ``end_reason``; a monotonic time."""
    journal_record: JournalRecord = JournalRecord.NONE
    previous_answer: PreviousAnswer | None = None
    """The answer of an earlier call with the same request id, if this call replays it."""
    error_summary: str | None = None
    """A description of its error for the audit, without content of the call."""
    last_sent_at: float = 0.0
    """When progress, a chunk or a heartbeat was last sent to its caller."""
    long_result: bool = False
    """Whether its result is encoded outside of the event loop."""
    cache_key: bytes | None = None
    """The key of its cached result (``CallCache``); None if the result is not cached."""
    asked_client: bool = False
    """Whether its tool has asked the client, or has looked up which questions the client answers. Then its result is
    valid only for this call.
    """
    shaping: dict[str, Json] | None = None
    """How its tool shaped a result."""
    response: ApiResponse | None = None
    """The response of the REST API that its tool called."""
    last_progress: Progress | None = None
    """Its tool's last report."""
    last_progress_at: float = 0.0
    reports: int = 0
    """Progress frames sent so far, on all connections."""
    chunks: int = 0
    """Chunks sent so far."""
    streamed_chars: int = 0
    """Characters that its tool has streamed so far, sent or not."""
    meter: UsageMeter
    task: asyncio.Task[None] | None = None
    side_tasks: set[asyncio.Task[Any]] | None = None
    """Tasks that the tool started and that wait for a provider or a child: they end with the call."""

    def advance(self, phase: CallPhase) -> None:
        """Enter a phase.

        Raises:
            IllegalTransitionError: the phase cannot follow the current one.
        """
        if phase not in SUCCESSORS[self.phase]:
            raise IllegalTransitionError(self.phase, phase)
        self.phase = phase

    @property
    def answered(self) -> bool:
        return self.phase is _ANSWERED

    @property
    def entered(self) -> bool:
        """Whether its tool has started; only meaningful until it is answered."""
        return self.phase is _RUNNING or self.phase is _ENDING

    @property
    def public_state(self) -> PublicState:
        """``waiting`` for its turn, ``running``, or ``ending``: cancelled, but not answered."""
        return PUBLIC_STATES[self.phase]

    @property
    def parent_scope(self) -> ChildScope | None:
        """The scope of the call that made it."""
        return None if self.parent is None else self.parent.child_scope

    @property
    def scope(self) -> str:
        """Where its key is unique: its session, or its parent's run."""
        parent_scope = self.parent_scope
        return self.session.id if parent_scope is None else parent_scope.run

    @property
    def resumes(self) -> bool:
        """Whether it is paused, or was stopped by a shutdown and resumes at the next start. This applies to a detached
        call, and to a call within it that is an orchestration call or can be repeated, such as a model turn of an
        agent.
        """
        if self.paused is not None and self.detached:
            return True
        if self.end_reason is not _SHUTDOWN:
            return False
        repeated = self.tool.repeatable and self.parent is not None and self.journal_record is JournalRecord.OWN
        if not self.tool.orchestration and not repeated:
            return False
        root = self
        while root.parent is not None:
            root = root.parent
        return root.detached

    @property
    def timeout_ms(self) -> float:
        """The time from its start to its deadline."""
        return round((self.deadline - self.started) * 1000, 3)

    @property
    def ends_with_connection(self) -> bool:
        """Whether it ends with the connection: as the caller requested, or by default if it is read-only and its
        session cannot be resumed.
        """
        if self.request.on_disconnect is None:
            return not self.session.resumable and self.tool.annotations.read_only_hint
        return self.request.on_disconnect == "cancel"

    def drop_arguments(self) -> None:
        """Free the arguments of an answered call."""
        self.arguments = {}
        self.current_arguments = None
        self.request = msgspec.structs.replace(self.request, arguments={})

    def report(self, progress: Progress, now: float) -> bool:
        """Send progress to the caller. Returns False if the port sends it with the next heartbeat, or if the call is
        answered.
        """
        if self.answered:
            return False
        if self.result_checked:  # a progress message may contain a part of the result
            progress = msgspec.structs.replace(progress, message=f"{self.tool.name}: running")
        self.last_progress, self.last_progress_at = progress, now
        sent = self.port.progress(self, progress)
        if sent:
            self.last_sent_at = now
        return sent

    def heartbeat(self, now: float) -> Progress:
        """The progress to send while the tool is silent: its last report, or how long the call has run."""
        if self.last_progress is not None:
            return self.last_progress
        doing = "running" if self.entered else "waiting for its turn"
        return Progress(f"{self.tool.name}: {doing}, {max(0.0, now - self.started):.0f} s")


class CallPort(Protocol):
    """Sends answers and reports to the caller, and decides nothing. Transports implement it."""

    def render(self, call: RunningCall, result: ToolResult) -> bytes:
        """The answer in the transport's format.

        Raises:
            TypeError, ValueError, RecursionError: the result cannot be written as JSON.
        """
        ...

    def deliver(self, call: RunningCall, answer: bytes) -> Awaitable[None] | None:
        """Send the answer after all pending chunks: at once, or before the returned awaitable completes. Does nothing
        if the caller has disconnected.
        """
        ...

    def progress(self, call: RunningCall, progress: Progress) -> bool:
        """Send a tool's report; it may replace an unsent earlier one. Never blocks.

        Returns False if this caller gets progress with heartbeats only.
        """
        ...

    def chunk(self, call: RunningCall, text: str) -> None:
        """Send a chunk; chunks may be joined. Never blocks."""
        ...

    def piece(self, call: RunningCall, piece: AnswerPiece) -> None:
        """Send reasoning or a piece of a tool call, if the transport has a form for it. Never blocks."""
        ...

    def question(self, call: RunningCall, entry: OpenQuestion) -> None:
        """Ask the caller, which has declared that it answers such questions; may ask again. Never blocks."""
        ...

    def question_closed(self, call: RunningCall, entry: OpenQuestion) -> None:
        """Report that an open question no longer needs an answer. Never blocks."""
        ...

    def heartbeat(self, calls: Sequence[RunningCall], now: float) -> None:
        """Send a heartbeat, at least one frame, for these calls: all that run on this port. Never blocks."""
        ...


class DisconnectedPort:
    """A ``CallPort`` without ``render`` and without a reader: answers stay cached, reports are dropped."""

    async def deliver(self, call: RunningCall, answer: bytes) -> None:
        pass

    def progress(self, call: RunningCall, progress: Progress) -> bool:  # noqa: ARG002 - as the protocol names them
        return False

    def chunk(self, call: RunningCall, text: str) -> None:
        pass

    def piece(self, call: RunningCall, piece: AnswerPiece) -> None:
        pass

    def question(self, call: RunningCall, entry: OpenQuestion) -> None:
        pass

    def question_closed(self, call: RunningCall, entry: OpenQuestion) -> None:
        pass

    def heartbeat(self, calls: Sequence[RunningCall], now: float) -> None:
        pass
