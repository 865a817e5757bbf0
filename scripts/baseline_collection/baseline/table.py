"""A record's summaries as a table on the terminal."""

from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .record import Estimate, Record, Summary

SIMULATED: Final = "SIMULATED: no provider was asked. Latencies of tools that ask one are made up."


def show(record: Record, console: Console) -> None:
    """Print one line per tool and load, then the skipped tools with their reasons."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("tool", no_wrap=True)
    several = len(record.configuration.loads) > 1
    if several:
        table.add_column("load", no_wrap=True)
    for heading in ("calls", "failed", "p50 ms", "p50's 95 %", "p95 ms", "calls/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for summary in record.summaries:
        name, load, *figures = _cells(summary)
        table.add_row(name, *([load] if several else []), *figures)
    console.print(table)
    for skipped in record.skipped:
        console.print(f"[dim]skipped {escape(skipped.tool_name)}: {escape(skipped.reason)}[/]", soft_wrap=True)
    if record.simulated:
        console.print(f"[bold yellow]{SIMULATED}[/]", soft_wrap=True)


def _cells(summary: Summary) -> tuple[str, ...]:
    failed = summary.count - summary.successes
    latency, throughput = summary.latency_ms, summary.throughput_per_s
    return (
        escape(summary.tool_name),
        summary.load.label,
        str(summary.count),
        f"[red]{failed} {', '.join(summary.errors)}[/]" if failed else "",
        written(latency.p50.value) if latency else "",
        interval(latency.p50) if latency else "",
        written(latency.p95.value) if latency else "",
        f"{throughput:,.1f}" if throughput else "",
    )


def counted(number: int, word: str) -> str:
    """``1 call``, ``2 calls``."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def written(ms: float) -> str:
    """Three significant digits, or all digits before the point."""
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"


def interval(estimate: Estimate) -> str:
    """``low to high``; empty if there is no interval."""
    return (
        "" if estimate.low is None or estimate.high is None else f"{written(estimate.low)} to {written(estimate.high)}"
    )
