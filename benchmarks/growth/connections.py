"""The cost of idle connections: memory, CPU time, and the effect on calls of other clients."""

import time
from collections.abc import Callable, Sequence
from statistics import median

from ..load import Held, Hold, Saturate, Saturated
from ..servers import LoadGenerator, daemon
from .curves import Curve

_IDLE_S = 5.0
_WARM_CONNECTIONS = 20
_ROUNDS = 3
_TICK_S = 0.01
"""The resolution of CPU time; smaller values are rounded up to it."""


def connections(numbers: Sequence[int], seconds: float, load: LoadGenerator, say: Callable[[str], None]) -> list[Curve]:
    """Memory, CPU time to open all, CPU time per idle second, and CPU time of another client's call."""
    most = str(numbers[-1] + 100)
    memory, opening, idling, calling = [], [], [], []
    with daemon(TOOLD_MAX_CONNECTIONS=most) as server:
        for number in (_WARM_CONNECTIONS, 0):
            load.ask(Hold(server.port, number), Held)
        server.settle()
        before, _ = server.memory()
        for number in numbers:
            say(f"{number:,} connections")
            load.ask(Hold(server.port, 0), Held)
            server.settle()
            used = server.cpu_s()
            load.ask(Hold(server.port, number), Held)
            opening.append((number, max(_TICK_S, server.cpu_s() - used) * 1000))
            server.settle()
            used = server.cpu_s()
            time.sleep(_IDLE_S)
            idling.append((number, max(_TICK_S, server.cpu_s() - used) * 1000 / _IDLE_S))
            memory.append((number, max(1.0, (server.memory()[0] - before) / 1024)))
    # A second daemon, because calls leave data in memory.
    with daemon(TOOLD_MAX_CONNECTIONS=most) as server:
        server.settle()
        for number, upkeep_ms in idling:
            say(f"calls with {number:,} idle connections")
            load.ask(Hold(server.port, number), Held)
            rounds = [
                load.ask(Saturate(server.port, server.process.pid, 16, 8, 0.3, seconds), Saturated) for _ in "123"
            ]
            each = [(one.cpu_s - upkeep_ms / 1000 * one.seconds) / one.calls for one in rounds]
            calling.append((number, median(each) * 1e6))
        load.ask(Hold(server.port, 0), Held)
    work = "idle connections"
    return [
        Curve("memory", work, "KiB added", 1, memory),
        Curve("opening", work, "CPU ms to open all", 1, opening),
        Curve("idling", work, "CPU ms per second", 1, idling),
        Curve("call with idle connections", work, "CPU µs per call, without idling", 0, calling),
    ]
