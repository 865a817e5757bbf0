"""``python -m benchmarks.cluster``: the CPU time of a call on one, two and three nodes, and with the embedded database.

The nodes are the workers of one service, on one PostgreSQL server with ``fsync`` on. All services run during the whole
measurement, and are called in turns: other load on the machine affects them alike. So the figures are CPU times; calls
per second say little where clients, nodes and database share the cores.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final, Literal

import psutil
from rich.console import Console
from rich.table import Table
from tests.postgres_cluster import Cluster, running_cluster
from toold.store.postgres.pg_schema import migrate_postgres

from .load import Saturate, Saturated
from .servers import LoadGenerator, Server, daemon, load_generator

NODES: Final = (1, 2, 3)
CONNECTIONS: Final = 24
"""Enough that each of three nodes gets some."""
IN_FLIGHT: Final = 8
CALLS: Final[tuple[Literal["echo", "writing"], ...]] = ("echo", "writing")
TITLES: Final = {"echo": "echo, not journalled", "writing": "journalled write"}
EFFICIENCY: Final = 0.9
"""The least CPU time per call on one node as a multiple of that on three."""
DEARER: Final = 1.3
"""The most CPU time of a journalled call with PostgreSQL as a multiple of that with SQLite."""
_WARM_UP_S: Final = 0.5
_READY_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Service:
    """A daemon, or several as one service."""

    name: str
    server: Server
    pids: tuple[int, ...]
    """Its processes that serve calls."""
    database: int | None = None
    """The process of its PostgreSQL server."""

    def backends(self) -> tuple[int, ...]:
        """All processes of the database now."""
        if self.database is None:
            return ()
        root = psutil.Process(self.database)
        return (root.pid, *(child.pid for child in root.children(recursive=True)))


@dataclass(slots=True)
class Seen:
    """CPU time per call in microseconds, one per round."""

    nodes: list[float] = field(default_factory=list)
    database: list[float] = field(default_factory=list)
    calls_per_s: list[float] = field(default_factory=list)

    def total(self) -> list[float]:
        return [nodes + database for nodes, database in zip(self.nodes, self.database, strict=True)]


Figures = dict[tuple[str, str], Seen]
"""By service and kind of call."""


def measure(rounds: int, seconds: float, load: LoadGenerator, say: Console) -> Figures:
    """Raises RuntimeError if a service did not start."""
    figures: Figures = {}
    with _services() as services:
        for service in services:
            service.server.settle()
        for number in range(rounds + 1):  # the first round is not counted: imports, first connections
            for call in CALLS:
                for service in services if number % 2 else reversed(services):
                    say.print(f"round {number} of {rounds}: {service.name}, {TITLES[call]}", highlight=False)
                    _round(service, call, seconds, load, figures.setdefault((service.name, call), Seen()), number > 0)
    return figures


def _round(
    service: Service, call: Literal["echo", "writing"], seconds: float, load: LoadGenerator, seen: Seen, counts: bool
) -> None:
    first, *others = service.pids
    backends = service.backends()
    order = Saturate(
        service.server.port,
        first,
        CONNECTIONS,
        IN_FLIGHT,
        _WARM_UP_S,
        seconds,
        call=call,
        more_pids=(*others, *backends),
    )
    done = load.ask(order, Saturated)
    if counts:
        nodes = done.cpu_s + sum(done.more_cpu_s[: len(others)])
        seen.nodes.append(1e6 * nodes / done.calls)
        seen.database.append(1e6 * sum(done.more_cpu_s[len(others) :]) / done.calls)
        seen.calls_per_s.append(done.calls / done.seconds)


@contextmanager
def _services() -> Iterator[Sequence[Service]]:
    with ExitStack() as stack:
        alone = stack.enter_context(daemon("SQLite"))
        services = [Service("SQLite", alone, (alone.process.pid,))]
        for count in NODES:
            cluster = stack.enter_context(running_cluster(fsync=True))
            services.append(stack.enter_context(_nodes(count, cluster)))
        yield services


@contextmanager
def _nodes(count: int, cluster: Cluster) -> Iterator[Service]:
    """A service of ``count`` nodes with a separate database."""
    url = f"postgresql://postgres@/postgres?host={cluster.socket_directory}"
    migrate_postgres(url)
    with tempfile.TemporaryDirectory(prefix="toold-bench-") as temporary:
        state = Path(temporary) / "state"
        settings = {
            "TOOLD_STORE": url,
            "TOOLD_CLUSTER_SECRET": "the-secret-of-a-benchmark",
            "TOOLD_WORKERS": str(count),
            "TOOLD_STATE_DIR": str(state),
        }
        with daemon(_name(count), **settings) as server:
            pids = (server.process.pid,) if count == 1 else tuple(_worker_pids(state, count))
            yield Service(server.name, server, pids, cluster.pid)


def _worker_pids(state: Path, count: int) -> Iterator[int]:
    give_up = time.perf_counter() + _READY_S
    for number in range(count):
        path = state / "workers" / str(number) / "daemon.json"
        while not path.exists():
            if time.perf_counter() > give_up:
                raise RuntimeError(f"worker {number} did not start")
            time.sleep(0.05)
        yield json.loads(path.read_text())["pid"]


# --- the report ------------------------------------------------------------------------------------------------------


def table(figures: Figures) -> Table:
    """One row per service and kind of call."""
    shown = Table(title="CPU time per call in µs (medians)")
    for title in ("service", "call", "nodes", "database", "all", "calls/s"):
        shown.add_column(title, justify="left" if title in {"service", "call"} else "right")
    for (service, call), seen in figures.items():
        cells = (seen.nodes, seen.database, seen.total(), seen.calls_per_s)
        shown.add_row(service, TITLES[call], *(f"{median(values):,.0f}" for values in cells))
    return shown


def verdicts(figures: Figures) -> list[str]:
    """One line per aim, from ratios of the same round."""
    lines = []
    for call in CALLS:
        few, many = (figures[_name(count), call] for count in (NODES[0], NODES[-1]))
        value = _ratio(few.total(), many.total())
        lines.append(
            f"{TITLES[call]}: efficiency from {NODES[0]} to {NODES[-1]} nodes {value:.2f} "
            f"(aim: at least {EFFICIENCY}, {'met' if value >= EFFICIENCY else 'missed'})"
        )
    written, embedded = figures[_name(1), "writing"], figures["SQLite", "writing"]
    for title, values in (("nodes alone", written.nodes), ("with the database", written.total())):
        value = _ratio(values, embedded.total())
        lines.append(
            f"{TITLES['writing']} on PostgreSQL, {title}: {value:.2f} times SQLite's CPU time "
            f"(aim: at most {DEARER}, {'met' if value <= DEARER else 'missed'})"
        )
    return lines


def _name(count: int) -> str:
    return f"{count} node{'s' if count > 1 else ''}"


def _ratio(values: Sequence[float], to: Sequence[float]) -> float:
    return median(a / b for a, b in zip(values, to, strict=True))


def main() -> int:
    """Measure and print; a missed aim does not fail the run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    arguments = parser.parse_args()
    rounds, seconds = (2, 1.0) if arguments.quick else (7, 3.0)
    console = Console()
    try:
        with load_generator() as load:
            figures = measure(rounds, seconds, load, Console(stderr=True))
    except RuntimeError as error:
        console.print(f"not measured: {error}", markup=False, soft_wrap=True)
        return 1
    console.print(table(figures))
    for line in verdicts(figures):
        console.print(line, highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
