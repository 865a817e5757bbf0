"""``python -m benchmarks.peers``: takes five minutes, with ``--quick`` 90 seconds for one short round.

Each server, workload and number of clients takes at most 24 seconds per round: 75 minutes if no server answers.
"""

import argparse
import datetime as dt
import signal
import sys
import time

import psutil
from rich.console import Console

from ..servers import load_generator
from .measure import FULL, QUICK, measure, sides
from .report import markdown, write


def main() -> int:
    """Measure, print the tables, write them and all rounds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description="Compare toold with other servers.")
    parser.add_argument("--quick", action="store_true", help="one short round")
    plan = QUICK if parser.parse_args().quick else FULL
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the started processes on the way out
    console = Console()
    began, load_before = time.perf_counter(), psutil.getloadavg()[0]
    try:
        with console.status("starting") as status, load_generator() as load, sides() as servers:
            seen = measure(servers, plan, load, status.update)
            about = {side.name: side.about for side in servers}
    except RuntimeError as error:
        console.print(f"not measured: {error}", markup=False, soft_wrap=True)
        return 1
    seconds = time.perf_counter() - began
    path = write(seen, about, plan, seconds, dt.datetime.now(dt.UTC))
    print(markdown(seen, plan))
    print(f"{seconds:.0f} s; load average {load_before:.1f} before; figures in {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
