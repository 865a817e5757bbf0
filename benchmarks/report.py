"""Compares the figures with their targets: a table for people, JSON for programs."""

import datetime as dt
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from toold import __version__

from .measure import CONNECTIONS, IDLE_CONNECTIONS, IN_FLIGHT, RATE, Figures, Plan, Ratios

RATIO_TARGET: Final = 1 / 2
"""The target for throughput and CPU time: handling a call may cost as much as transporting it."""
MEMORY_TARGET_KIB: Final = 17.0
"""The target for an idle connection: 17 MiB for 1,000 of them."""
ADDED_TARGET_MS: Final = 0.08
"""The target for the latency added to the bare server's p50."""
START_TARGET_S: Final = 1.5
"""The target for the time until the daemon accepts calls."""

RESULTS: Final = Path(__file__).parent / "results"
_PACKAGES: Final = ("websockets", "uvloop", "msgspec", "pydantic", "psutil")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table: the figures of both servers, the comparison, the target and the verdict."""

    name: str
    bare: str
    daemon: str
    comparison: str
    target: str = ""
    verdict: str = ""


def rows(bare: Figures, daemon: Figures) -> list[Row]:
    """The rows of the table."""
    speed = daemon.calls_per_s / bare.calls_per_s
    effort = bare.cpu_us_per_call / daemon.cpu_us_per_call
    memory = daemon.rss_kib_per_connection
    added = daemon.p50_ms - bare.p50_ms
    ratio_target = f"≥ {RATIO_TARGET:.2f}"
    return [
        Row(
            f"calls/s, {CONNECTIONS} × {IN_FLIGHT}",
            f"{bare.calls_per_s:,.0f}",
            f"{daemon.calls_per_s:,.0f}",
            f"ratio {speed:.2f}",
            ratio_target,
            _verdict(speed >= RATIO_TARGET),
        ),
        Row(
            f"CPU/call, {CONNECTIONS} × {IN_FLIGHT}",
            f"{bare.cpu_us_per_call:.1f} µs",
            f"{daemon.cpu_us_per_call:.1f} µs",
            f"ratio {effort:.2f}",
            ratio_target,
            _verdict(effort >= RATIO_TARGET),
        ),
        Row(
            f"p50 at {RATE:,}/s",
            f"{bare.p50_ms:.2f} ms",
            f"{daemon.p50_ms:.2f} ms",
            f"{added:+.2f} ms",
            f"≤ {ADDED_TARGET_MS} ms",
            _verdict(added <= ADDED_TARGET_MS),
        ),
        Row(
            f"p99 at {RATE:,}/s",
            f"{bare.p99_ms:.2f} ms",
            f"{daemon.p99_ms:.2f} ms",
            f"{daemon.p99_ms - bare.p99_ms:+.2f} ms",
        ),
        Row(
            "idle connection",
            f"{bare.rss_kib_per_connection:.1f} KiB",
            f"{memory:.1f} KiB",
            f"{memory - bare.rss_kib_per_connection:+.1f} KiB",
            f"≤ {MEMORY_TARGET_KIB:.0f} KiB",
            _verdict(memory <= MEMORY_TARGET_KIB),
        ),
        Row(
            "start to hello",
            f"{bare.start_s:.2f} s",
            f"{daemon.start_s:.2f} s",
            "",
            f"≤ {START_TARGET_S} s",
            _verdict(daemon.start_s <= START_TARGET_S),
        ),
    ]


def _verdict(met: bool) -> str:
    return "met" if met else "missed"


def show(table_rows: list[Row], console: Console) -> None:
    """Print the table."""
    table = Table(
        title="toold and a bare websockets echo server, medians",
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("", no_wrap=True)
    for heading in ("bare", "toold", "toold to bare", "target"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for row in table_rows:
        colour = {"met": "green", "missed": "red"}.get(row.verdict, "")
        shown = f"[{colour}]{row.verdict}[/]" if colour else ""
        table.add_row(row.name, row.bare, row.daemon, row.comparison, row.target, shown)
    console.print(table)


def write(bare: Figures, daemon: Figures, ratios: Ratios, plan: Plan, now: dt.datetime) -> Path:
    """Write the figures and the machine to ``results/bench-<date>.json``. Returns the path."""
    record: dict[str, Any] = {
        "date": now,
        "machine": machine(),
        "packages": {"toold": __version__} | {name: version(name) for name in _PACKAGES},
        "plan": plan,
        "load": {"connections": CONNECTIONS, "in_flight": IN_FLIGHT, "rate": RATE, "idle": IDLE_CONNECTIONS},
        "bare": bare,
        "daemon": daemon,
        "ratios": ratios,
        "rows": rows(bare, daemon),
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"bench-{now:%Y-%m-%dT%H%M%SZ}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
    return path


def machine() -> dict[str, Any]:
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": psutil.cpu_count(),
        "memory_mib": psutil.virtual_memory().total // 2**20,
        "load_average": psutil.getloadavg(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def _processor() -> str:
    """The processor's name: from a file on Linux, from a call elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
