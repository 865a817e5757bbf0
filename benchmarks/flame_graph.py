"""``python -m benchmarks.flame_graph``: samples the Python stacks of the daemon under load into a flame graph."""

import argparse
import datetime as dt
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from .driving import Drive, Driven
from .report import RESULTS
from .servers import daemon, load_generator

_PROFILER: Final = Path(__file__).parents[1] / ".venv" / "profiler" / "bin" / "py-spy"
_SETTLE_S: Final = 1.0
_LONGEST_S: Final = 60.0
_PAGE: Final = """<!doctype html><meta charset="utf-8"><title>%s</title>
<style>body{font:14px sans-serif;margin:1em}svg{width:100%%;height:auto}</style><p>%s</p>
%s
"""


def main() -> int:
    """Write the page and print its path."""
    parser = argparse.ArgumentParser(prog="make profile", description="Profile the daemon under load.")
    parser.add_argument("--transport", choices=["websocket", "mcp"], default="websocket")
    parser.add_argument("--clients", type=int, default=16, help="each has one call in flight")
    parser.add_argument("--payload", type=int, default=64, help="bytes of text per call")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rate", type=int, default=250, help="samples per second")
    parser.add_argument("--gil", action="store_true", help="only samples of threads that hold the interpreter's lock")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the started processes on the way out
    RESULTS.mkdir(exist_ok=True)
    page = RESULTS / f"profile-{dt.datetime.now(dt.UTC):%Y-%m-%dT%H%M%SZ}.html"
    picture = page.with_suffix(".svg")
    http = options.transport == "mcp"
    with daemon(TOOLD_SPILL_BYTES=str(8 * 1024**2)) as server, load_generator() as load:
        server.settle()
        sampling = ["record", "--duration", str(options.seconds), "--rate", str(options.rate), "--output", str(picture)]
        profiler = subprocess.Popen(
            [_PROFILER, *sampling, *(["--gil"] if options.gil else []), "--pid", str(server.process.pid)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        driven = load.ask(
            Drive(
                "http" if http else "socket",
                server.http_port if http else server.port,
                server.process.pid,
                options.clients,
                options.payload,
                tool="echo",
                arguments={},
                path="/",
                warm_up_s=_SETTLE_S,
                seconds=options.seconds,
                longest_s=options.seconds + _LONGEST_S,
            ),
            Driven,
        )
        _, errors = profiler.communicate()
    if profiler.returncode != 0 or not picture.exists():
        print(f"not profiled: {errors.strip() or 'the profiler wrote nothing'}", file=sys.stderr)
        return 1
    about = (
        f"{options.transport}, {options.clients} clients, {options.payload:,} bytes of text: {driven.calls:,} calls, "
        f"{driven.cpu_s / max(1, driven.calls) * 1e6:,.0f} µs of CPU time per call, with the profiler"
    )
    page.write_text(_PAGE % ("toold, profile", about, picture.read_text(encoding="utf-8")), encoding="utf-8")
    picture.unlink()
    print(f"{about}\n{page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
