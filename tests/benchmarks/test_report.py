"""The verdicts of `make bench`."""

import io

from benchmarks.measure import Figures
from benchmarks.report import rows, show
from rich.console import Console

MEMORY = {"rss_kib_per_connection": 13.0, "uss_kib_per_connection": 12.0}
BARE = Figures(90_000, cpu_us_per_call=10, p50_ms=0.1, p99_ms=0.2, start_s=0.1, **MEMORY)


def printed(**daemon: float) -> list[str]:
    """The verdicts in the table's order, as the command prints them."""
    good = {"calls_per_s": 45_000, "cpu_us_per_call": 20, "p50_ms": 0.17, "p99_ms": 9}
    figures = Figures(**{**good, **MEMORY, "rss_kib_per_connection": 17, "start_s": 1.5, **daemon})
    page = io.StringIO()
    show(rows(BARE, figures), Console(file=page, width=120))
    return [line.split()[-1] for line in page.getvalue().splitlines() if line.rstrip().endswith(("met", "missed"))]


def test_a_missed_target_is_printed_as_missed() -> None:
    """However narrowly it was missed."""
    assert printed() == ["met"] * 5
    assert printed(calls_per_s=44_000, cpu_us_per_call=20.1) == ["missed", "missed", "met", "met", "met"]
    assert printed(p50_ms=0.19, rss_kib_per_connection=17.1, start_s=1.6) == ["met", "met", *["missed"] * 3]
