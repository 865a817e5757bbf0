"""``python -m benchmarks.agents``: takes two to three minutes."""

import datetime as dt
import signal
import sys
import time

import psutil
from rich.console import Console

from .measure import measure, programs
from .report import markdown, write


def main() -> int:
    """Measure, print the table, write it and all rounds. Returns 1 if a program did not start or a run failed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the started processes on the way out
    console = Console()
    began, load_before = time.perf_counter(), psutil.getloadavg()[0]
    try:
        with console.status("starting") as status, programs() as (started, turns_since):
            seen = measure(started, turns_since, status.update)
            about = {program.name: program.about for program in started}
            loaded_mib = {program.name: program.loaded_mib for program in started}
    except RuntimeError as error:
        console.print(f"not measured: {error}", markup=False, soft_wrap=True)
        return 1
    path = write(seen, about, loaded_mib, dt.datetime.now(dt.UTC))
    print("\n".join(f"{name}: {text}" for name, text in about.items()) + "\n\n" + markdown(seen, loaded_mib))
    print(f"{time.perf_counter() - began:.0f} s; load average {load_before:.1f} before; figures in {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
