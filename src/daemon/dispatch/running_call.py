"""A call on its road: what dispatch keeps of it while it runs, and what it asks of the transport it came by."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Protocol

import msgspec
from pydantic import BaseModel

from ...protocol.session_registry import SessionState
from ...protocol.tool_call import ClientInfo, Cost, Json, ModelUsage, Principal, Progress, ToolCall, ToolResult, Usage
from ...tools import Tool
from .permits import Permits, RunPermit

MESSAGE_CHARS: Final = 1000
"""A progress message is for a person; more of it is cut."""


@dataclass(slots=True, eq=False, kw_only=True)
class Session(SessionState["CallPort"]):
    """One client's standing, held by the port of its connection."""

    label: str
    principal: Principal
    client: ClientInfo
    toolset: str
    """Which tools it may call, and is shown: for good."""
    usable: tuple[str, ...] | None = None
    """The toolsets that its principal may have instead, which it may be told of; None: all."""
    transport: str
    """``websocket``, later ``mcp`` and others; for logs and audit."""
    streaming: bool
    """Whether anybody reads pieces of answers."""
    permits: Permits
    away: "CallPort"
    """Takes the answers of its calls while nobody is there to hear them."""
    journalled: bool = False
    """Some of its calls are, or were, in the journal."""
    stored: set[str] = field(default_factory=set)
    """Keys of calls that were not journalled, and whose answers may be on the disk all the same."""


class EndReason(Enum):
    """Who or what ended a call before its tool did."""

    CALLER = "caller"
    OPERATOR = "operator"
    DEADLINE = "deadline"
    DISCONNECT = "disconnect"
    SHUTDOWN = "shutdown"
    PARENT = "parent"


class UsageMeter(msgspec.Struct):
    """What a call has used so far; written by the road and by the context, read once at the end."""

    queue_s: float = 0.0
    tool_s: float = 0.0
    provider_s: float = 0.0
    provider_calls: int = 0
    """Requests that a vendor was sent."""
    provider: str | None = None
    model: str | None = None
    chosen_because: str | None = None
    by_model: dict[tuple[str, str], ModelUsage] | None = None
    """What completions took, by provider and model; None where there was none."""
    simulated: bool = False

    def book(self, spent: ModelUsage) -> None:
        """Add what a completion took."""
        by_model = self.by_model = self.by_model or {}
        key = spent.provider, spent.model
        by_model[key] = by_model[key] + spent if key in by_model else spent

    @property
    def spent(self) -> tuple[ModelUsage, ...]:
        """What completions took, each model once."""
        return tuple(self.by_model.values()) if self.by_model else ()

    def add(self, other: "UsageMeter") -> None:
        """Add what another call has used of vendors."""
        self.provider_s += other.provider_s
        self.provider_calls += other.provider_calls
        if other.provider is not None:
            self.provider, self.model, self.chosen_because = other.provider, other.model, other.chosen_because
        for spent in other.spent:
            self.book(spent)
        self.simulated = self.simulated or other.simulated

    @property
    def usage(self) -> Usage | None:
        """The tokens of all completions."""
        parts = self.spent
        return sum((part.usage for part in parts[1:]), parts[0].usage) if parts else None

    @property
    def cost(self) -> Cost | None:
        """The sum, where it is in one currency."""
        costs = [part.cost for part in self.spent if part.cost is not None]
        if len({cost.currency for cost in costs}) != 1:
            return None
        amount = round(sum(cost.amount for cost in costs), 8)
        return Cost(amount, costs[0].currency, any(cost.estimated for cost in costs))


class ChildScope(msgspec.Struct, eq=False, kw_only=True):
    """An orchestration call's relation to its child calls."""

    run: str
    """What they are known under in the journal: this call's id, or what those of an earlier call are known under."""
    earlier: bool
    """Whether it goes on with an earlier call, so that some of them may be in the journal."""
    depth: int
    """Nesting depth of orchestration calls; the client's own call has 1."""
    names: set[str]
    """Of all that it made."""
    running: "set[RunningCall]"
    meter: UsageMeter
    """What those that have ended used, and theirs."""
    over: bool = False
    """Its tool has returned: it makes no more."""
    on_hold: bool = False
    """It is about to be stopped, and makes no more until it goes on."""
    mark: str = ""
    """Ends the ids of what it makes, where it goes on under its own id: a call's id is its alone."""

    def leave(self, child: "RunningCall") -> None:
        """A call that it made has its answer."""
        self.running.discard(child)
        self.meter.add(child.meter)
        if child.family is not None:
            self.meter.add(child.family.meter)


class RunningCall(msgspec.Struct, eq=False, kw_only=True):
    """One accepted call. ``started`` and ``deadline`` are monotonic instants of the loop's clock, in seconds."""

    id: str
    key: str
    session: Session
    call: ToolCall
    tool: Tool
    arguments: BaseModel | dict[str, Any]
    """As ``bind`` returned them."""
    port: "CallPort"
    permit: RunPermit
    parent: "RunningCall | None" = None
    """The call that made it; None for one of a transport's."""
    family: ChildScope | None = None
    """Of an orchestration call; None for others."""
    started: float
    started_at: float
    """Unix time in seconds."""
    deadline: float
    timeout_lowered: bool
    ended_at: float | None = None
    """When it was told to end, at its deadline or before."""
    begun: bool = False
    """Its task took its first step."""
    running: bool = False
    """The tool's function was entered."""
    answered: bool = False
    ended_by: EndReason | None = None
    journalled: bool = False
    """It is, or may be, in the journal: so its end has to be written there before its answer is sent."""
    repeated: bool = False
    """Its session made a call under its id before, which the journal knows and the session's book does not."""
    ended_before: float | None = None
    """When that one ended, where its answer is this one's; an instant as ``started`` is."""
    again: bool = False
    """The journal has it from an earlier run, and it is to run once more."""
    detached: bool = False
    """It runs apart from whoever made it, and was written down as started before it was begun."""
    last_report: float = 0.0
    shaping: dict[str, Json] | None = None
    """What its tool did to a result."""
    latest: Progress | None = None
    """Its tool's last report."""
    latest_at: float = 0.0
    reports: int = 0
    """Progress frames sent so far, by whichever connections."""
    chunks: int = 0
    """Pieces of its answer sent so far."""
    meter: UsageMeter
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None
    """Ends the call at its deadline."""

    strays: set[asyncio.Task[Any]] | None = None
    """Tasks of the tool's own that wait for a provider: they end with the call."""

    @property
    def kin(self) -> ChildScope | None:
        """That of the call that made it."""
        return None if self.parent is None else self.parent.family

    @property
    def scope(self) -> str:
        """What its key is unique in: its session, or its parent's run."""
        kin = self.kin
        return self.session.id if kin is None else kin.run

    @property
    def goes_on(self) -> bool:
        """It was stopped, and goes on at the next start: a detached call, or one within it that makes calls."""
        if self.ended_by is not EndReason.SHUTDOWN or self.family is None:
            return False
        first = self
        while first.parent is not None:
            first = first.parent
        return first.detached

    @property
    def timeout_ms(self) -> float:
        """The whole time that it was given."""
        return round((self.deadline - self.started) * 1000, 3)

    @property
    def ends_with_connection(self) -> bool:
        """Unless its caller said: nothing does that its client may come back for; else what only reads does, and what
        may write goes on.
        """
        if self.call.on_disconnect is None:
            return not self.session.resumable and self.tool.annotations.read_only_hint
        return self.call.on_disconnect == "cancel"

    def report(self, progress: Progress, now: float) -> bool:
        """Let its caller know how far it is. False where that is told at the next beat, or not any more."""
        if self.answered:
            return False
        self.latest, self.latest_at = progress, now
        told = self.port.progress(self, progress)
        if told:
            self.last_report = now
        return told

    def sign_of_life(self, now: float) -> Progress:
        """What a call that is still at work says for itself: its tool's last report, or how long it has run."""
        if self.latest is not None:
            return self.latest
        what = "running" if self.running else "waiting for its turn"
        return Progress(f"{self.tool.name}: {what}, {max(0.0, now - self.started):.0f} s")


class CallPort(Protocol):
    """The way back to the caller: what a transport offers for a call's answers. Only frames, no decisions."""

    def render(self, running: RunningCall, result: ToolResult) -> bytes:
        """The terminal answer as it will travel.

        Raises:
            TypeError, ValueError, RecursionError: the result cannot be written as JSON.
        """
        ...

    async def deliver(self, running: RunningCall, answer: bytes) -> None:
        """Send the terminal answer, after whatever is still to go before it. A caller that is gone is no error."""
        ...

    def progress(self, running: RunningCall, progress: Progress) -> bool:
        """The tool reported; the latest report may take the place of an earlier one. Never blocks.

        False where this caller is told nothing between beats.
        """
        ...

    def chunk(self, running: RunningCall, text: str) -> None:
        """The tool streams a piece of its answer. Never blocks; pieces may be joined."""
        ...

    def beat(self, running: Sequence[RunningCall], now: float) -> None:
        """These calls, all that run of one port, are still at work; at least one frame goes out. Never blocks."""
        ...


class DetachedPort:
    """A ``CallPort`` but for ``render``, where nobody listens: answers stay where they are kept, reports go nowhere."""

    async def deliver(self, running: RunningCall, answer: bytes) -> None:
        pass

    def progress(self, _running: RunningCall, _progress: Progress) -> bool:
        return False

    def chunk(self, running: RunningCall, text: str) -> None:
        pass

    def beat(self, running: Sequence[RunningCall], now: float) -> None:
        pass
