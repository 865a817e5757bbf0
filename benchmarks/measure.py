"""The measurement: both servers in one run, in turns, with medians, since machines are noisy."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from statistics import median
from typing import Final

import msgspec

from .load import Held, Hold, Pace, Paced, Saturate, Saturated
from .servers import LoadGenerator, Server, bare_server, daemon

CONNECTIONS: Final = 16
IN_FLIGHT: Final = 8
RATE: Final = 1000
"""Calls per second for the latency: few enough that calls rarely wait for each other."""
IDLE_CONNECTIONS: Final = 1000
_WARM_CONNECTIONS: Final = 20
"""Connections opened and closed before the first memory reading, so that one-time allocations do not count."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The durations; seconds are per round and server."""

    rounds: int
    warm_up_s: float
    saturate_s: float
    pace_rounds: int
    pace_s: float


FULL: Final = Plan(rounds=5, warm_up_s=0.5, saturate_s=2.0, pace_rounds=3, pace_s=1.5)
QUICK: Final = Plan(rounds=2, warm_up_s=0.3, saturate_s=0.5, pace_rounds=1, pace_s=0.8)


class Figures(msgspec.Struct, frozen=True):
    """The medians of one server's rounds."""

    calls_per_s: float
    cpu_us_per_call: float
    p50_ms: float
    p99_ms: float
    start_s: float
    rss_kib_per_connection: float
    uss_kib_per_connection: float


@dataclass(slots=True)
class Rounds:
    """The results of the load generator for one server, one per round."""

    saturated: list[Saturated] = field(default_factory=list)
    paced: list[Paced] = field(default_factory=list)


class Ratios(msgspec.Struct, frozen=True):
    """The daemon's figures in relation to the bare server's of the same round, one per round: other load on the machine
    affects both alike.
    """

    cpu_per_call: tuple[float, ...]
    calls_per_s: tuple[float, ...]
    added_p50_ms: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Idle:
    """Start time in seconds, and KiB per idle connection, of a server with idle connections only."""

    start_s: float
    rss_kib: float
    uss_kib: float


def measure(plan: Plan, load: LoadGenerator, say: Callable[[str], None]) -> tuple[Figures, Figures, Ratios]:
    """The figures of the bare server and the daemon, and their ratios by round. ``say`` gets the current step."""
    say("starting both servers")
    with bare_server() as bare, daemon() as toold:
        bare_rounds, toold_rounds = _rounds(plan, load, (bare, toold), say)
    say(f"holding {IDLE_CONNECTIONS:,} idle connections")
    return (
        _figures(bare_rounds, bare.start_s, _idle(bare_server, load)),
        _figures(toold_rounds, toold.start_s, _idle(daemon, load)),
        _ratios(bare_rounds, toold_rounds),
    )


def _rounds(
    plan: Plan, load: LoadGenerator, servers: tuple[Server, Server], say: Callable[[str], None]
) -> tuple[Rounds, Rounds]:
    for server in servers:
        server.settle()
    sides = (servers[0], Rounds()), (servers[1], Rounds())
    for number in range(plan.rounds):
        say(f"round {number + 1} of {plan.rounds}: {CONNECTIONS} connections × {IN_FLIGHT} calls in flight")
        for server, seen in sides if number % 2 == 0 else reversed(sides):  # alternate the order
            order = Saturate(server.port, server.process.pid, CONNECTIONS, IN_FLIGHT, plan.warm_up_s, plan.saturate_s)
            seen.saturated.append(load.ask(order, Saturated))
    for number in range(plan.pace_rounds):
        say(f"round {number + 1} of {plan.pace_rounds}: {RATE} calls per second")
        for server, seen in sides if number % 2 == 0 else reversed(sides):
            seen.paced.append(load.ask(Pace(server.port, CONNECTIONS, RATE, plan.pace_s), Paced))
    return sides[0][1], sides[1][1]


def _idle(start: Callable[[], AbstractContextManager[Server]], load: LoadGenerator) -> Idle:
    with start() as server:
        for connections in (_WARM_CONNECTIONS, 0):
            load.ask(Hold(server.port, connections), Held)
        server.settle()
        before = server.memory()
        load.ask(Hold(server.port, IDLE_CONNECTIONS), Held)
        server.settle()
        after = server.memory()
        load.ask(Hold(server.port, 0), Held)
        rss, uss = ((late - early) / 1024 / IDLE_CONNECTIONS for early, late in zip(before, after, strict=True))
        return Idle(server.start_s, rss, uss)


def _ratios(bare: Rounds, daemon: Rounds) -> Ratios:
    saturated = list(zip(daemon.saturated, bare.saturated, strict=True))
    return Ratios(
        tuple(one.cpu_s / one.calls / (other.cpu_s / other.calls) for one, other in saturated),
        tuple(one.calls / one.seconds / (other.calls / other.seconds) for one, other in saturated),
        tuple(one.p50_ms - other.p50_ms for one, other in zip(daemon.paced, bare.paced, strict=True)),
    )


def _figures(rounds: Rounds, start_s: float, idle: Idle) -> Figures:
    return Figures(
        calls_per_s=median(one.calls / one.seconds for one in rounds.saturated),
        cpu_us_per_call=median(one.cpu_s / one.calls * 1_000_000 for one in rounds.saturated),
        p50_ms=median(one.p50_ms for one in rounds.paced),
        p99_ms=median(one.p99_ms for one in rounds.paced),
        start_s=median((start_s, idle.start_s)),
        rss_kib_per_connection=idle.rss_kib,
        uss_kib_per_connection=idle.uss_kib,
    )
