"""A record's summaries as a table on the terminal."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .record import Estimate, Record, Summary

FEWEST_BEYOND: Final = 5
"""A quantile is shown if at least so many calls are expected beyond it; with fewer it is roughly the maximum."""
SIMULATED: Final = "SIMULATED: no provider was asked. Latencies of tools that ask one are made up."


def show(record: Record, console: Console) -> None:
    """Print one line per tool and load, then the skipped tools with their reasons."""
    rows = [_cells(summary) for summary in record.summaries]
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    titles = filled(rows, always=("tool", "calls", "p50 ms"))
    if len(record.configuration.loads) == 1:
        titles.remove("load")
    for title in titles:
        table.add_column(title, justify="left" if title in {"tool", "load"} else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(row[title] for title in titles))
    console.print(table)
    for skipped in record.skipped:
        console.print(f"[dim]skipped {escape(skipped.tool_name)}: {escape(skipped.reason)}[/]", soft_wrap=True)
    if record.simulated:
        console.print(f"[bold yellow]{SIMULATED}[/]", soft_wrap=True)


def _cells(summary: Summary) -> dict[str, str]:
    failed = summary.count - summary.successes
    latency = latency_cells(summary)
    return {
        "tool": escape(summary.tool_name),
        "load": summary.load.label,
        "calls": str(summary.count),
        "failed": f"[red]{failed} {', '.join(summary.errors)}[/]" if failed else "",
        **{title: latency[title] for title in ("p50 ms", "p50's 95 %", "p95 ms", "max ms")},
        "calls/s": calls_per_s(summary),
    }


def filled(rows: Sequence[Mapping[str, str]], *, always: Collection[str]) -> list[str]:
    """The titles of the columns that have any text, and those that are ``always`` shown, in the rows' order."""
    titles = list(rows[0]) if rows else list(always)
    return [title for title in titles if title in always or any(row[title] for row in rows)]


def latency_cells(summary: Summary) -> dict[str, str]:
    """The latencies of a summary by title; empty where there are too few calls."""
    latency, count = summary.latency_ms, summary.successes
    if latency is None:
        return dict.fromkeys(("p50 ms", "p50's 95 %", "p90 ms", "p95 ms", "p99 ms", "max ms"), "")
    tails = {"p90 ms": (latency.p90, 0.9), "p95 ms": (latency.p95, 0.95), "p99 ms": (latency.p99, 0.99)}
    return {
        "p50 ms": written(latency.p50.value),
        "p50's 95 %": interval(latency.p50),
        **{title: written(tail.value) if has_enough(count, share) else "" for title, (tail, share) in tails.items()},
        "max ms": written(latency.max),
    }


def has_enough(count: int, share: float) -> bool:
    """Whether so many calls are enough to state this quantile: 50 for p90, 100 for p95, 500 for p99."""
    return round(count * (1 - share), 6) >= FEWEST_BEYOND


def calls_per_s(summary: Summary) -> str:
    """The throughput; empty for one caller, whose throughput is only the inverse of its latency."""
    throughput = summary.throughput_per_s
    return f"{throughput:,.1f}" if throughput and summary.load.concurrency != 1 else ""


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
