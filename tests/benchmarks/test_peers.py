"""The tables of the comparison, with synthetic rounds."""

import msgspec
from benchmarks.driving import Driven
from benchmarks.peers.measure import BARE, FASTMCP, HTTP, QUICK, SDK, SOCKET
from benchmarks.peers.report import markdown

ROUND = Driven(calls=20, seconds=1.0, cpu_s=0.03, client_cpu_s=0.0, p50_ms=50.5, p99_ms=51.0, errors={}, reconnects=0)


def test_cpu_time_below_a_tick_has_no_ratio() -> None:
    """A server whose CPU time is below the clock's resolution gets no ratio of CPU times."""
    idle, busy = msgspec.structs.replace(ROUND, cpu_s=0.0), msgspec.structs.replace(ROUND, cpu_s=0.06)
    sides = {BARE: [idle], SOCKET: [ROUND], HTTP: [ROUND], SDK: [busy], FASTMCP: [idle]}
    rows = [line for line in markdown({("waits", 1): sides}, QUICK).splitlines() if line.startswith("| waits")]
    assert rows[-1] == "| waits | 1 | 1.00, – | 1.00, 2.00 | 1.00, – | 1.00, – |"
