"""``python -m benchmarks``: takes minutes; with ``--quick`` or the name of one part less."""

import argparse
import datetime as dt
import signal
import sys
import time

from rich.console import Console

from . import a2a, dashboard, orchestration_calls, shaping
from .earlier_run import compared, last_run
from .measure import FULL, IDLE_CONNECTIONS, QUICK, measure
from .open_files import raise_file_limit
from .report import RESULTS, machine, rows, show, write
from .servers import load_generator

_SPARE_FILES = 200


def main() -> int:
    """Measure, print the table, write the JSON. A missed target does not fail the run: machines are noisy."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Compare toold with a bare echo server.")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--shaping", action="store_true", help="measure the shaping of results instead")
    parser.add_argument("--orchestration", action="store_true", help="measure pipelines and batches instead")
    parser.add_argument(
        "--a2a", action="store_true", help="measure messages of A2A instead, compared with calls of MCP"
    )
    parser.add_argument(
        "--dashboard", action="store_true", help="measure open pages of the dashboard instead, compared with none"
    )
    arguments = parser.parse_args()
    plan = QUICK if arguments.quick else FULL
    console = Console()
    if arguments.shaping:
        shaping.show(shaping.measure(), console)
        return 0
    if arguments.orchestration:
        return _orchestration(console)
    if arguments.a2a:
        return _a2a(console)
    if arguments.dashboard:
        return _dashboard(console)
    if (files := raise_file_limit()) < IDLE_CONNECTIONS + _SPARE_FILES:
        console.print(
            f"the limit of {files} open files is too low for {IDLE_CONNECTIONS} connections: raise it with ulimit -n"
        )
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the started processes on the way out
    began = time.perf_counter()
    try:
        with console.status("starting") as status, load_generator() as load:
            bare, daemon, ratios = measure(plan, load, status.update)
    except RuntimeError as error:
        console.print(f"not measured: {error}", markup=False, soft_wrap=True)
        return 1
    show(rows(bare, daemon), console)
    earlier = last_run(RESULTS, machine())
    console.print("no earlier run of this machine" if earlier is None else compared(earlier, ratios), soft_wrap=True)
    path = write(bare, daemon, ratios, plan, dt.datetime.now(dt.UTC))
    console.print(f"{time.perf_counter() - began:.0f} s; figures in {path}", soft_wrap=True)
    return 0 if arguments.quick else _a2a(console) or _dashboard(console)


def _orchestration(console: Console) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the started processes on the way out
    try:
        with console.status("measuring"):
            route, large = orchestration_calls.measure()
    except RuntimeError as error:
        console.print(f"not measured: {error}", markup=False, soft_wrap=True)
        return 1
    orchestration_calls.show(route, large, console)
    return 0


def _a2a(console: Console) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the started processes on the way out
    try:
        with console.status("measuring A2A"):
            measured = a2a.measure()
    except RuntimeError as error:
        console.print(f"not measured: {error}", markup=False, soft_wrap=True)
        return 1
    a2a.show(measured, console)
    return 0


def _dashboard(console: Console) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the started processes on the way out
    try:
        with console.status("measuring the dashboard"):
            measured = dashboard.measure()
    except RuntimeError as error:
        console.print(f"not measured: {error}", markup=False, soft_wrap=True)
        return 1
    dashboard.show(measured, console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
