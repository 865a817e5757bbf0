"""The table at the end of a run."""

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from baseline.record import Call, Load, Record, Skipped
from baseline.table import counted, show, written


def shown(record: Record) -> str:
    out = io.StringIO()
    show(record, Console(file=out, width=120))
    return out.getvalue()


def test_table_has_failures_and_medians(make_record: Callable[..., Record], make_call: Callable[..., Call]) -> None:
    """The line of a tool has its calls, its failures by code and its median. Skipped tools follow with the reason."""
    calls = [make_call(iteration=1), make_call(iteration=2, status="error", error_code="TIMEOUT")]
    text = shown(make_record(calls, skipped=(Skipped(tool_name="other", reason="it takes [an] hour"),)))
    (line,) = [line for line in text.splitlines() if "echo" in line]
    assert line.split()[:5] == ["echo", "2", "1", "TIMEOUT", "2"]
    assert "skipped other: it takes [an] hour" in text
    assert "SIMULATED" not in text


def test_lines_name_the_load(make_record: Callable[..., Record], make_call: Callable[..., Call]) -> None:
    """If a run has several loads, each line names its load. The table of a simulated run says that it is simulated."""
    calls = [make_call(), make_call(load=Load(concurrency=8))]
    text = shown(make_record(calls, simulated=True))
    assert "1 at once" in text
    assert "8 at once" in text
    assert "SIMULATED" in text


@pytest.mark.parametrize(("ms", "words"), [(0.12345, "0.123"), (3.0, "3"), (99.4, "99.4"), (3004.2, "3,004")])
def test_milliseconds_are_plain_numbers(ms: float, words: str) -> None:
    """Milliseconds have three digits, and long times have all digits."""
    assert written(ms) == words


def test_counts_have_singular_and_plural() -> None:
    """Counts are followed by the singular or the plural."""
    assert (counted(1, "call"), counted(2, "call")) == ("1 call", "2 calls")
