"""A comparison as Markdown: changes come first, and simulated runs are marked."""

from collections.abc import Callable

from baseline.comparison_text import as_markdown
from baseline.record import Call, Record
from baseline.two_runs import compare


def test_changed_tools_come_first(make_record: Callable[..., Record], make_call: Callable[..., Call]) -> None:
    """The slower tool is above the unchanged one, with its figures and the reason. The headline counts both."""
    before, after = (
        make_record(
            [
                make_call(tool_name=tool, iteration=n, latency_ms=factor * (10 + n % 7 / 100))
                for tool, factor in (("a-same", 1.0), ("b-slow", slower))
                for n in range(20)
            ],
            id=name,
        )
        for name, slower in (("old", 1.0), ("new", 2.0))
    )
    text = as_markdown([compare(before, after)])
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    assert text.startswith("# new against old")
    assert "**1 slower, 1 same.**" in text
    assert lines[0].startswith("| `b-slow` | 1 at once | 10 | 20.1 | 2.00 (")
    assert "**slower** | the median is 100% higher |" in lines[0]
    assert "| same |" in lines[1]
    assert "SIMULATED" not in text


def test_simulated_runs_are_marked(make_record: Callable[..., Record], make_call: Callable[..., Call]) -> None:
    """A comparison of simulated runs says so above everything else."""
    record = make_record([make_call()], simulated=True)
    assert as_markdown([compare(record, record)]).splitlines()[2].startswith("**SIMULATED")


def test_more_failures_are_reported(make_record: Callable[..., Record], make_call: Callable[..., Call]) -> None:
    """If a tool fails more often, its line has the counts before and after, and the headline reports it too."""
    good = [make_call(iteration=n) for n in range(20)]
    bad = [make_call(iteration=n, status="error", error_code="TIMEOUT") for n in range(20)]
    text = as_markdown([compare(make_record(good), make_record(bad))])
    assert "1 failing more often" in text
    assert "**fails more often** |" in text
    assert "0 of 20 failed before, 20 of 20 now" in text
