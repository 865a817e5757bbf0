"""``python -m benchmarks.growth``: takes five minutes, with ``--quick`` 80 seconds for a tenth of the range."""

import argparse
import asyncio
import datetime as dt
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import psutil
from rich.console import Console

from ..open_files import raise_file_limit
from ..servers import load_generator
from . import bound_tools, calls, connections, rows, tools
from .curves import Curve
from .report import markdown, write

_SPARE_FILES: Final = 200


@dataclass(frozen=True, slots=True)
class Plan:
    """The points of each curve, and the seconds per point."""

    in_flight: Sequence[int]
    age: Sequence[int]
    connections: Sequence[int]
    tools: Sequence[int]
    bound_tools: Sequence[int]
    rows: Sequence[int]
    seconds: float


FULL: Final = Plan(
    in_flight=(1, 3, 10, 30, 100, 300, 1000),
    age=(100, 300, 1000, 3000, 10_000, 30_000, 100_000),
    connections=(10, 50, 200, 1000, 2500, 5000),
    tools=(10, 30, 100, 300, 1000),
    bound_tools=(10, 100, 400, 1250),
    rows=(10_000, 30_000, 100_000, 300_000, 1_000_000),
    seconds=1.0,
)
QUICK: Final = Plan(
    in_flight=(1, 10, 100),
    age=(1000, 3000, 10_000),
    connections=(50, 200, 500),
    tools=(10, 30, 100),
    bound_tools=(10, 40, 120),
    rows=(10_000, 30_000, 100_000),
    seconds=0.5,
)


def main() -> int:
    """Measure, print the table, and write it with figures and chart. A steep curve does not fail the run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description="Measure how costs grow.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the range")
    plan = QUICK if parser.parse_args().quick else FULL
    console = Console()
    needed = plan.connections[-1] + _SPARE_FILES
    if (files := raise_file_limit()) < needed:
        console.print(f"the limit of {files} open files is too low, {needed} are needed: raise it with ulimit -n")
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the started processes on the way out
    began, load_before = time.perf_counter(), psutil.getloadavg()[0]
    try:
        with console.status("starting") as status:
            curves = _measure(plan, status.update)
    except RuntimeError as error:
        console.print(f"not measured: {error}", markup=False, soft_wrap=True)
        return 1
    seconds = time.perf_counter() - began
    path = write(curves, seconds, dt.datetime.now(dt.UTC))
    print(markdown(curves))
    print(f"{seconds:.0f} s; load average {load_before:.1f} before; figures in {path}, with table and chart")
    return 0


def _measure(plan: Plan, say: Callable[[str], None]) -> list[Curve]:
    with load_generator() as load:
        return [
            *calls.in_flight(plan.in_flight, plan.seconds, load, say),
            *calls.session_age(plan.age, load, say),
            *connections.connections(plan.connections, plan.seconds, load, say),
            *tools.tools(plan.tools, say),
            *bound_tools.bound_tools(plan.bound_tools, say),
            *asyncio.run(rows.rows(plan.rows, say)),
        ]


if __name__ == "__main__":
    sys.exit(main())
