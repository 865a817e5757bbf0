"""Progress of a run: calls made and planned, failures, and the median of the current tool."""

from collections import defaultdict
from statistics import median

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from .record import Call, Load
from .table import written


class Watch:
    """Collects finished calls and summarises them in one line."""

    def __init__(self) -> None:
        self.failures = 0
        self._latencies: dict[tuple[str, Load], list[float]] = defaultdict(list)

    def note(self, call: Call) -> None:
        """Count a finished call."""
        if call.status == "success":
            self._latencies[call.tool_name, call.load].append(call.latency_ms)
        else:
            self.failures += 1

    def line(self, call: Call) -> str:
        """After a call: its tool, its load, the running median, the failures so far."""
        latencies = self._latencies[call.tool_name, call.load]
        p50 = f"p50 {written(median(latencies))} ms" if latencies else "no success yet"
        return f"{call.tool_name}, {call.load.label}: {p50}" + (f", {self.failures} failed" if self.failures else "")


def progress_bar(console: Console) -> Progress:
    """A progress bar with counts, shown only on a terminal."""
    return Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
        console=console,
        disable=not console.is_terminal,
    )
