"""Clients that make calls back to back, and their results. Part of the load generator's process.

A failed call is counted and does not end the run; a broken connection is replaced.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from statistics import quantiles
from typing import Final, Literal, TypeAlias

import msgspec

from .clients import NUMBER, CallFailedError, Client, HttpClient, SocketClient

_NUMBERS: Final = count(1)
_POLL_S: Final = 0.01
_AGAIN_S: Final = 0.05
"""The pause between two attempts to connect."""
_TOLD_CHARS: Final = 120
_OPENED_AT_ONCE: Final = 50
"""Concurrent connects, below the accept backlog of every server."""

ClientTransport: TypeAlias = Literal["socket", "http"]


class Drive(msgspec.Struct, tag=True, frozen=True):
    """An order for ``clients`` that send texts of ``payload`` bytes and ``arguments``.

    The measurement lasts ``seconds`` after ``warm_up_s``, or longer, up to ``longest_s``, until there is one answer per
    client. Calls without an answer ``longest_s`` later have failed.
    """

    transport: ClientTransport
    port: int
    pid: int
    clients: int
    payload: int
    tool: str
    arguments: dict[str, int]
    path: str
    """The path of the WebSocket."""
    warm_up_s: float
    seconds: float
    longest_s: float


class Driven(msgspec.Struct, frozen=True):
    """The results: ``calls`` correct answers in ``seconds``, with ``cpu_s`` of the server's CPU time."""

    calls: int
    seconds: float
    cpu_s: float
    client_cpu_s: float
    """CPU time of the calling process."""
    p50_ms: float | None
    """From sending to the complete answer; None with fewer than two answers."""
    p99_ms: float | None
    errors: dict[str, int]
    """The number of failures by reason."""
    reconnects: int
    """The number of reconnects."""


class _Tally:
    """The results of all clients so far."""

    def __init__(self) -> None:
        self.over = False
        self.latencies: list[float] = []
        self.errors: Counter[str] = Counter()
        self.reconnects = 0


async def drive(order: Drive, server_cpu_s: Callable[[], float]) -> Driven:
    """Carry out an order. ``server_cpu_s`` returns the server's CPU time so far."""
    tally = _Tally()
    places = asyncio.Semaphore(_OPENED_AT_ONCE)
    workers = [asyncio.create_task(_work(_client(order), tally, places)) for _ in range(order.clients)]
    try:
        await asyncio.sleep(order.warm_up_s)
        await _until(lambda: len(tally.latencies) >= order.clients, order.longest_s)
        tally.latencies.clear()
        began, cpu, own = time.perf_counter(), server_cpu_s(), time.process_time()
        await asyncio.sleep(order.seconds)
        await _until(lambda: len(tally.latencies) >= order.clients, order.longest_s - order.seconds)
        ended, cpu_after, own_after = time.perf_counter(), server_cpu_s(), time.process_time()
        latencies = tally.latencies
        tally.latencies, tally.over = [], True
        _, unanswered = await asyncio.wait(workers, timeout=order.longest_s)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    if unanswered:
        tally.errors["no answer in time"] += len(unanswered)
    p50_ms, p99_ms = _percentiles(latencies)
    return Driven(
        len(latencies),
        ended - began,
        cpu_after - cpu,
        own_after - own,
        p50_ms,
        p99_ms,
        dict(tally.errors),
        tally.reconnects,
    )


def _client(order: Drive) -> Client:
    if order.transport == "http":
        return HttpClient(order.port, order.tool, order.arguments, order.payload)
    return SocketClient(order.port, order.path, order.tool, order.arguments, order.payload)


async def _work(client: Client, tally: _Tally, places: asyncio.Semaphore) -> None:
    """Make one client's calls until the end, with a new connection after a break."""
    numbers: Iterator[int] = _NUMBERS
    opened = False
    try:
        while not tally.over:
            try:
                async with places:
                    await client.open()
                tally.reconnects += opened
                opened = True
                while not tally.over:
                    began = time.perf_counter()
                    await client.call(NUMBER % next(numbers))
                    tally.latencies.append(time.perf_counter() - began)
            except (OSError, CallFailedError) as error:
                tally.errors[_told(error)] += 1
                client.close()
                await asyncio.sleep(_AGAIN_S)
    finally:
        client.close()


async def _until(enough: Callable[[], bool], longest_s: float) -> None:
    give_up = time.perf_counter() + longest_s
    while not enough() and time.perf_counter() < give_up:
        await asyncio.sleep(_POLL_S)


def _told(error: Exception) -> str:
    """The error without its variable parts, so that equal errors are counted together."""
    return re.sub(r"\d{4,}|[0-9a-f]{12}-[0-9a-f]+", "…", str(error) or type(error).__name__)[:_TOLD_CHARS]


def _percentiles(latencies: list[float]) -> tuple[float | None, float | None]:
    if len(latencies) < 2:
        return None, None
    percentiles = quantiles(latencies, n=100)
    return percentiles[49] * 1000, percentiles[98] * 1000
