"""The concrete ``ToolContext``: one running call as its tool sees it."""

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final, Protocol, TypeVar

import msgspec

from ...protocol.calls import ClientInfo, Principal, Progress, Usage
from ...protocol.errors import ServiceUnavailableError
from ...providers import Abilities, Completion, CompletionRequest, OnDelta, ProviderName
from ...tools import Conversation, DaemonView, FileAccess, Operation
from .calls import RunningCall
from .gate import ProviderGate
from .permits import RunPermit

T = TypeVar("T")

_MESSAGE_CHARS: Final = 1000
"""A progress message is for a person; more of it is cut."""


class Conversations(Protocol):
    """The conversations that calls can go on with."""

    def hold(
        self, continuation_id: str | None, principal: Principal, permit: RunPermit, on_wait: Callable[[], None]
    ) -> AbstractAsyncContextManager[Conversation]:
        """``ToolContext.conversation``. Where it has to wait, ``on_wait`` is called and ``permit`` lent back."""
        ...


class Services(msgspec.Struct, frozen=True, eq=False):
    """What is the same for every call."""

    daemon: DaemonView
    files: FileAccess
    gates: Mapping[str, ProviderGate]
    absent: Mapping[str, str]
    """Provider → what to set so that it can be asked."""
    conversations: Conversations


class CallContext:
    """What the daemon lends to a tool for the time of one call. Satisfies ``tools.ToolContext``."""

    __slots__ = ("_running", "_services")

    def __init__(self, running: RunningCall, services: Services) -> None:
        self._running = running
        self._services = services

    @property
    def daemon(self) -> DaemonView:
        return self._services.daemon

    @property
    def files(self) -> FileAccess:
        return self._services.files

    @property
    def call_id(self) -> str:
        return self._running.id

    @property
    def principal(self) -> Principal:
        return self._running.session.principal

    @property
    def client(self) -> ClientInfo:
        return self._running.session.client

    @property
    def streaming(self) -> bool:
        return self._running.session.streaming

    def remaining(self) -> float:
        return max(0.0, self._running.deadline - time.monotonic())

    def progress(self, message: str, done: float | None = None, total: float | None = None) -> None:
        running = self._running
        if running.answered:
            return
        running.latest = Progress(_sendable(message)[:_MESSAGE_CHARS], _finite(done), _finite(total))
        running.latest_at = time.monotonic()
        if running.port.progress(running, running.latest):
            running.last_report = running.latest_at

    def stream(self, text: str) -> None:
        running = self._running
        text = _sendable(text)
        if text and running.session.streaming and not running.answered:
            running.last_report = time.monotonic()
            running.port.chunk(running, text)

    def conversation(self, continuation_id: str | None) -> AbstractAsyncContextManager[Conversation]:
        running = self._running
        return self._services.conversations.hold(
            continuation_id,
            running.session.principal,
            running.permit,
            lambda: self.progress("waiting for another call of the same conversation"),
        )

    async def complete(
        self, request: CompletionRequest, *, on_delta: OnDelta | None = None, chosen_because: str | None = None
    ) -> Completion:
        gate, meter = self._gate(request.model.provider), self._running.meter
        meter.model, meter.chosen_because = request.model.id, chosen_because
        completion = await self._ask(gate, partial(gate.provider.complete, request, on_delta=on_delta))
        meter.model = completion.model
        meter.simulated = meter.simulated or completion.simulated  # a simulator that the operator gave as the vendor
        self._book(completion)
        return completion

    def abilities(self, provider: ProviderName) -> Abilities:
        return self._gate(provider).provider

    async def vendor(self, provider: ProviderName, operation: Operation[T]) -> T:
        return await self._ask(self._gate(provider), operation)

    def _gate(self, provider: ProviderName) -> ProviderGate:
        gate = self._services.gates.get(provider)
        if gate is None:
            raise ServiceUnavailableError(self._services.absent[provider], transient=False)
        return gate

    async def _ask(self, gate: ProviderGate, operation: Operation[T]) -> T:
        running, meter = self._running, self._running.meter
        meter.provider = gate.provider.name
        meter.simulated = meter.simulated or gate.provider.simulated
        self._note_stray()
        return await gate.ask(operation, deadline=running.deadline, permit=running.permit, meter=meter)

    def _note_stray(self) -> None:
        """Where a tool asks in a task of its own, that task is to end with the call."""
        running, task = self._running, asyncio.current_task()
        if task is not None and task is not running.task:
            running.strays = running.strays or set()
            running.strays.add(task)
            task.add_done_callback(running.strays.discard)

    def _book(self, completion: Completion) -> None:
        meter = self._running.meter
        if completion.usage is not None:
            meter.usage = (meter.usage or Usage(0, 0)) + completion.usage
        if completion.cost is not None and not meter.simulated:  # what is simulated costs nothing
            costs = meter.costs = meter.costs or {}
            costs[completion.cost.currency] = costs.get(completion.cost.currency, 0.0) + completion.cost.amount


def _sendable(text: str) -> str:
    """Half of a surrogate pair becomes a question mark: it is no Unicode text, and cannot be sent.

    Raises:
        TypeError: the tool reported something else than a string.
    """
    if not isinstance(text, str):
        raise TypeError(f"a report is a string, not {type(text).__name__}")
    return text if text.isascii() else text.encode(errors="replace").decode()


def _finite(number: float | None) -> float | None:
    """JSON has no infinities, and knows no other numbers than these."""
    return float(number) if isinstance(number, int | float) and math.isfinite(number) else None
