"""The concrete ``ToolContext``: one running call as its tool sees it."""

from collections.abc import Callable, Mapping

import msgspec

from ...protocol.calls import ClientInfo, Principal, Progress, Usage
from ...protocol.errors import ServiceUnavailableError
from ...providers import Completion, CompletionRequest, OnDelta
from ...tools import DaemonView, FileAccess
from .calls import RunningCall
from .gate import ProviderGate


class House(msgspec.Struct, frozen=True, eq=False):
    """What is the same for every call."""

    daemon: DaemonView
    files: FileAccess
    gates: Mapping[str, ProviderGate]
    absent: Mapping[str, str]
    """Provider → what to set so that it can be asked."""
    clock: Callable[[], float]


class CallContext:
    """What the daemon lends to a tool for the time of one call. Satisfies ``tools.ToolContext``."""

    __slots__ = ("_house", "_running")

    def __init__(self, running: RunningCall, house: House) -> None:
        self._running = running
        self._house = house

    @property
    def daemon(self) -> DaemonView:
        return self._house.daemon

    @property
    def files(self) -> FileAccess:
        return self._house.files

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
        return max(0.0, self._running.deadline - self._house.clock())

    def progress(self, message: str, done: float | None = None, total: float | None = None) -> None:
        running = self._running
        if running.answered:
            return
        running.latest = Progress(message, done, total)
        if running.port.progress(running, running.latest):
            running.last_report = self._house.clock()

    def stream(self, text: str) -> None:
        running = self._running
        if text and running.session.streaming and not running.answered:
            running.last_report = self._house.clock()
            running.port.chunk(running, text)

    async def complete(self, request: CompletionRequest, *, on_delta: OnDelta | None = None) -> Completion:
        running, meter = self._running, self._running.meter
        gate = self._house.gates.get(request.model.provider)
        if gate is None:
            raise ServiceUnavailableError(self._house.absent[request.model.provider], transient=False)
        meter.provider, meter.model = gate.provider.name, request.model.id
        meter.simulated = meter.simulated or gate.provider.simulated
        completion = await gate.complete(
            request, deadline=running.deadline, permit=running.permit, meter=meter, on_delta=on_delta
        )
        meter.model = completion.model
        self._book(completion)
        return completion

    def _book(self, completion: Completion) -> None:
        meter = self._running.meter
        if completion.usage is not None:
            meter.usage = (meter.usage or Usage(0, 0)) + completion.usage
        if completion.cost is not None and not meter.simulated:  # what is simulated costs nothing
            costs = meter.costs = meter.costs or {}
            costs[completion.cost.currency] = costs.get(completion.cost.currency, 0.0) + completion.cost.amount
