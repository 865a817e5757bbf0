"""``python -m benchmarks``: some 40 seconds; with ``--quick`` some 10, for a first look; ``--shaping`` takes 2."""

import argparse
import datetime as dt
import resource
import signal
import sys
import time

from rich.console import Console

from . import shaping
from .measure import FULL, IDLE_CONNECTIONS, QUICK, measure
from .report import rows, show, write
from .servers import load_generator

_SPARE_FILES = 200


def main() -> int:
    """Measure, print the table, write the JSON. A missed aim is no failure: machines are noisy."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Time toold beside a bare echo server.")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--shaping", action="store_true", help="time the shaping of results instead, some seconds")
    arguments = parser.parse_args()
    plan = QUICK if arguments.quick else FULL
    console = Console()
    if arguments.shaping:
        shaping.show(shaping.measure(), console)
        return 0
    if (files := _raise_file_limit()) < IDLE_CONNECTIONS + _SPARE_FILES:
        console.print(
            f"{files} open files are allowed, {IDLE_CONNECTIONS} connections need more: ulimit -Hn says how many"
        )
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended on the way out
    began = time.perf_counter()
    try:
        with console.status("starting") as status, load_generator() as load:
            bare, daemon = measure(plan, load, status.update)
    except RuntimeError as error:
        console.print(f"not measured: {error}", markup=False, soft_wrap=True)
        return 1
    show(rows(bare, daemon), console)
    path = write(bare, daemon, plan, dt.datetime.now(dt.UTC))
    console.print(f"{time.perf_counter() - began:.0f} s; figures in {path}", soft_wrap=True)
    return 0


def _raise_file_limit() -> int:
    """Allow this process and those that it starts as many open files as the system lets them; how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = 2**16 if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= allowed:
        return allowed
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed


if __name__ == "__main__":
    sys.exit(main())
