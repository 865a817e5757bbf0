"""The cost of concurrent calls, and of the calls that a session has made."""

from collections.abc import Callable, Sequence
from statistics import median
from typing import Literal

from ..load import Age, Aged, Saturate, Saturated
from ..servers import LoadGenerator, daemon
from .curves import Curve

_LIMITS = {"TOOLD_MAX_ACCEPTED_PER_SESSION": "1000", "TOOLD_MAX_WAITING": "2000"}
_ROUNDS = 3
_CALLS: dict[Literal["echo", "waiting"], str] = {"echo": "calls in flight", "waiting": "waiting calls"}


def in_flight(numbers: Sequence[int], seconds: float, load: LoadGenerator, say: Callable[[str], None]) -> list[Curve]:
    """CPU time to answer concurrent calls of ``echo``, and of a tool that takes 5 ms, so that all but 24 calls wait."""
    with daemon(**_LIMITS) as server:
        server.settle()
        curves = []
        for call, name in _CALLS.items():
            seen: dict[int, list[float]] = {number: [] for number in numbers}
            for _ in range(_ROUNDS):
                for number in numbers:
                    say(f"{number} {name}")
                    connections = min(number, 10)
                    order = Saturate(
                        server.port, server.process.pid, connections, number // connections, 0.3, seconds, call
                    )
                    saturated = load.ask(order, Saturated)
                    seen[number].append(saturated.cpu_s / max(1, saturated.calls) * number * 1000)
            points = [(number, max(0.001, median(costs))) for number, costs in seen.items()]
            curves.append(Curve(name, name, "CPU ms to answer each once", 1, points))
        return curves


def session_age(marks: Sequence[int], load: LoadGenerator, say: Callable[[str], None]) -> list[Curve]:
    """CPU time and the daemon's memory after the calls of one session."""
    with daemon(**_LIMITS) as server:
        server.settle()
        say(f"{marks[-1]:,} calls in one session")
        before, _ = server.memory()
        aged = load.ask(Age(server.port, server.process.pid, tuple(marks)), Aged)
    cpu = [(mark, spent * 1000) for mark, spent in zip(marks, aged.cpu_s, strict=True) if spent > 0]
    held = [(mark, (rss - before) / 1024) for mark, rss in zip(marks, aged.rss, strict=True) if rss > before]
    return [
        Curve("session age", "calls made in a session", "CPU ms in total", 1, cpu),
        Curve("session's memory", "calls made in a session", "KiB added", 1, held),
    ]
