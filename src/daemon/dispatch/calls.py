"""A call on its road: what dispatch keeps of it while it runs, and what it asks of the transport it came by."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

import msgspec
from pydantic import BaseModel

from ...protocol.calls import ClientInfo, Cost, Principal, Progress, ToolCall, ToolResult, Usage
from ...protocol.sessions import Standing
from ...tools import Tool
from .permits import Permits, RunPermit


@dataclass(slots=True, eq=False, kw_only=True)
class Session(Standing["CallPort"]):
    """One client's standing, held by the port of its connection."""

    label: str
    principal: Principal
    client: ClientInfo
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


class EndedBy(Enum):
    """Who or what ended a call before its tool did."""

    CALLER = "caller"
    OPERATOR = "operator"
    DEADLINE = "deadline"
    DISCONNECT = "disconnect"
    SHUTDOWN = "shutdown"


class Meter(msgspec.Struct):
    """What a call has used so far; written by the road and by the context, read once at the end."""

    queue_s: float = 0.0
    tool_s: float = 0.0
    provider_s: float = 0.0
    provider_calls: int = 0
    """Requests that a vendor was sent."""
    provider: str | None = None
    model: str | None = None
    chosen_because: str | None = None
    usage: Usage | None = None
    costs: dict[str, float] | None = None
    """By currency; None where nothing was paid for."""
    simulated: bool = False

    @property
    def cost(self) -> Cost | None:
        """The sum, where it is in one currency."""
        if self.costs is None or len(self.costs) != 1:
            return None
        currency, amount = next(iter(self.costs.items()))
        return Cost(round(amount, 8), currency)


class RunningCall(msgspec.Struct, eq=False, kw_only=True):
    """One accepted call. ``started`` and ``deadline`` are monotonic instants of the loop's clock, in seconds."""

    id: str
    key: str
    session: Session
    call: ToolCall
    tool: Tool
    arguments: BaseModel
    port: "CallPort"
    permit: RunPermit
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
    ended_by: EndedBy | None = None
    journalled: bool = False
    """It is, or may be, in the journal: so its end has to be written there before its answer is sent."""
    last_report: float = 0.0
    latest: Progress | None = None
    """Its tool's last report."""
    latest_at: float = 0.0
    reports: int = 0
    """Progress frames sent so far, by whichever connections."""
    chunks: int = 0
    """Pieces of its answer sent so far."""
    meter: Meter
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None
    """Ends the call at its deadline."""

    strays: set[asyncio.Task[Any]] | None = None
    """Tasks of the tool's own that wait for a provider: they end with the call."""

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
