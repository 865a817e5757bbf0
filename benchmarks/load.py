"""The load generator, a separate process: orders on stdin, results on stdout, one JSON object per line.

Each call has a unique id, which identifies its answer. A missing, duplicate or error answer ends the run. In
comparisons with other servers, failures are counted instead (``driving``).
"""

import asyncio
import itertools
import statistics
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, Literal

import msgspec
import psutil
import uvloop

from .driving import Drive, Driven, drive
from .wire import HELLO, TEXT, Connection, masked

_CALL: Final = (
    b'{"op":"call_tool","request_id":"%010d","name":"echo","arguments":{"text":"a line of text to be echoed"}}'
)
_WAITING_CALL: Final = _CALL.replace(b'"text"', b'"delay_ms":5,"text"')
_WRITING_CALL: Final = _CALL.replace(b'"echo"', b'"sim_effect"')
_CALLS: Final = {"echo": _CALL, "waiting": _WAITING_CALL, "writing": _WRITING_CALL}
_ID_KEY: Final = b'"request_id":"'
_ERROR: Final = b'"error":{'
_AT_ONCE: Final = 16
_DRAIN_S: Final = 30.0
"""Calls without an answer after this are lost."""
_ORDER_S: Final = 120.0
"""The limit of an order; only a server that never answers exceeds it."""


class Saturate(msgspec.Struct, tag=True, frozen=True):
    """Keep ``in_flight`` calls on each connection for ``seconds``, after ``warm_up_s``: of ``echo``, of one that takes
    5 ms, or of a tool that writes.
    """

    port: int
    pid: int
    connections: int
    in_flight: int
    warm_up_s: float
    seconds: float
    call: Literal["echo", "waiting", "writing"] = "echo"
    more_pids: tuple[int, ...] = ()
    """Other processes whose CPU time is measured."""


class Saturated(msgspec.Struct, frozen=True):
    """``calls`` answers in ``seconds``, with ``cpu_s`` of the server's CPU time, user and system."""

    calls: int
    seconds: float
    cpu_s: float
    more_cpu_s: tuple[float, ...] = ()
    """That of ``more_pids``."""


class Pace(msgspec.Struct, tag=True, frozen=True):
    """Send ``rate`` calls per second for ``seconds``, whether or not earlier calls are answered."""

    port: int
    connections: int
    rate: int
    seconds: float


class Paced(msgspec.Struct, frozen=True):
    """Milliseconds from sending a call to its answer."""

    calls: int
    p50_ms: float
    p99_ms: float


class Hold(msgspec.Struct, tag=True, frozen=True):
    """Hold this number of idle connections, until the next ``Hold``."""

    port: int
    connections: int


class Held(msgspec.Struct, frozen=True):
    """The number of open connections."""

    connections: int


class Age(msgspec.Struct, tag=True, frozen=True):
    """Call on one connection, 16 at once, and sample at each of these numbers of answers."""

    port: int
    pid: int
    marks: tuple[int, ...]


class Aged(msgspec.Struct, frozen=True):
    """At each mark: the server's CPU time since the first call, and its memory in bytes."""

    cpu_s: tuple[float, ...]
    rss: tuple[int, ...]


Order = Saturate | Pace | Hold | Drive | Age


class Caller:
    """The calls of one connection, and their answers."""

    def __init__(
        self, connection: Connection, ids: Iterator[int], latencies: list[float] | None = None, call: bytes = _CALL
    ) -> None:
        self._connection = connection
        self._call = call
        self._ids = ids
        self._latencies = latencies
        self._sent: dict[bytes, float] = {}
        self.answered = 0
        self.repeat = False
        """Whether each answer is followed by a new call."""
        self.wrong: bytes | None = None
        """An unexpected answer."""
        connection.on_text = self._on_text

    def call(self) -> None:
        frame = self._call % next(self._ids)
        self._sent[_request_id(frame)] = time.perf_counter() if self._latencies is not None else 0.0
        self._connection.send(masked(TEXT, frame))

    def _on_text(self, payload: bytes) -> None:
        sent = self._sent.pop(_request_id(payload), None)
        if sent is None or _ERROR in payload:
            self.wrong = payload
            return
        self.answered += 1
        if self._latencies is not None:
            self._latencies.append(time.perf_counter() - sent)
        if self.repeat:
            self.call()

    async def drain(self) -> None:
        """Wait until every call is answered.

        Raises:
            RuntimeError: an answer is missing or wrong.
        """
        self.repeat = False
        give_up = time.perf_counter() + _DRAIN_S
        while self._sent and self.wrong is None and not self._connection.closed.done():
            if time.perf_counter() > give_up:
                break
            await asyncio.sleep(0.005)
        if self.wrong is not None:
            raise RuntimeError(f"a wrong answer: {self.wrong[:300]!r}")
        if self._sent:
            why = self._connection.closed.result() if self._connection.closed.done() else "the server is silent"
            raise RuntimeError(f"{len(self._sent)} calls were not answered: {why}")


def _request_id(payload: bytes) -> bytes:
    start = payload.find(_ID_KEY) + len(_ID_KEY)
    return payload[start : start + 10]


class Generator:
    """Carries out orders sequentially."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._held: list[Connection] = []

    async def carry_out(self, order: Order) -> Saturated | Paced | Held | Driven | Aged:
        match order:
            case Saturate():
                return await self._saturate(order)
            case Pace():
                return await self._pace(order)
            case Hold():
                return await self._hold(order)
            case Age():
                return await self._age(order)
            case Drive():
                return await drive(order, partial(cpu_s, psutil.Process(order.pid)))

    async def _saturate(self, order: Saturate) -> Saturated:
        processes = [psutil.Process(pid) for pid in (order.pid, *order.more_pids)]
        async with _opened(order.port, order.connections) as connections:
            callers = [Caller(connection, self._ids, call=_CALLS[order.call]) for connection in connections]
            for caller in callers:
                caller.repeat = True
                for _ in range(order.in_flight):
                    caller.call()
            await asyncio.sleep(order.warm_up_s)
            began, used, before = time.perf_counter(), _cpu_of(processes), _answered(callers)
            await asyncio.sleep(order.seconds)
            ended, used_after, after = time.perf_counter(), _cpu_of(processes), _answered(callers)
            for caller in callers:
                await caller.drain()
        cpu, *more_cpu = (late - early for early, late in zip(used, used_after, strict=True))
        return Saturated(after - before, ended - began, cpu, tuple(more_cpu))

    async def _pace(self, order: Pace) -> Paced:
        latencies: list[float] = []
        async with _opened(order.port, order.connections) as connections:
            callers = [Caller(connection, self._ids, latencies) for connection in connections]
            began = time.perf_counter()
            for number in range(int(order.rate * order.seconds)):
                if (wait := began + number / order.rate - time.perf_counter()) > 0:
                    await asyncio.sleep(wait)
                callers[number % len(callers)].call()
            for caller in callers:
                await caller.drain()
        percentiles = statistics.quantiles(latencies, n=100)
        return Paced(len(latencies), percentiles[49] * 1000, percentiles[98] * 1000)

    async def _age(self, order: Age) -> Aged:
        server = psutil.Process(order.pid)
        worked, resident = [], []
        async with _opened(order.port, 1) as (connection,):
            caller, began = Caller(connection, self._ids), cpu_s(server)
            caller.repeat = True
            for _ in range(_AT_ONCE):
                caller.call()
            for mark in order.marks:
                while caller.answered < mark and not connection.closed.done() and caller.wrong is None:
                    await asyncio.sleep(0.001)
                worked.append(cpu_s(server) - began)
                resident.append(server.memory_info().rss)
            await caller.drain()
        return Aged(tuple(worked), tuple(resident))

    async def _hold(self, order: Hold) -> Held:
        for connection in self._held:
            connection.close()
        self._held = []
        while len(self._held) < order.connections:
            batch = min(50, order.connections - len(self._held))  # below the accept backlog of every server
            self._held += await asyncio.gather(*(Connection.open(order.port, HELLO) for _ in range(batch)))
        return Held(len(self._held))


@asynccontextmanager
async def _opened(port: int, count: int) -> AsyncIterator[list[Connection]]:
    connections = [await Connection.open(port, HELLO) for _ in range(count)]
    try:
        yield connections
    finally:
        for connection in connections:
            connection.close()


def cpu_s(process: psutil.Process) -> float:
    """The CPU time of the process in seconds, user and system."""
    times = process.cpu_times()
    return times.user + times.system


def _answered(callers: Sequence[Caller]) -> int:
    return sum(caller.answered for caller in callers)


def _cpu_of(processes: Sequence[psutil.Process]) -> list[float]:
    return [cpu_s(process) for process in processes]


async def main() -> None:
    """Serve orders until stdin ends."""
    loop = asyncio.get_running_loop()
    decode = msgspec.json.Decoder(Order).decode
    generator = Generator()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        async with asyncio.timeout(_ORDER_S):
            seen = await generator.carry_out(decode(line))
        print(msgspec.json.encode(seen).decode(), flush=True)


if __name__ == "__main__":
    uvloop.run(main())
