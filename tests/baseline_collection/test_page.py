"""The report: one self-contained page, pictures as files next to it, and escaped names."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from baseline.page import html, write_report
from baseline.record import Call, Load, Record, Skipped

Make = Callable[..., Record]


def test_page_is_self_contained(tmp_path: Path, make_record: Make, make_call: Callable[..., Call]) -> None:
    """The page embeds the pictures and loads nothing. The same pictures are written as files."""
    page = write_report(make_record([make_call(iteration=n) for n in range(1, 4)]), tmp_path / "new" / "report")
    text = page.read_text("utf-8")
    assert page == tmp_path / "new" / "report" / "index.html"
    assert not re.search(r"(?:src|href)=(?!'data:)", text)
    assert "<script" not in text
    names = sorted(path.name for path in page.parent.glob("*.png"))
    assert names == ["latency.png", "layers.png", "over-the-run.png"]
    assert text.count("data:image/png;base64,") == 2 * len(names)  # each also for narrow screens


def test_simulated_run_has_a_banner(make_record: Make, make_call: Callable[..., Call]) -> None:
    """A simulated run has a banner, a real one does not."""
    assert "class=simulated>SIMULATED" in html(make_record([make_call()], simulated=True), {}, {})
    assert "SIMULATED" not in html(make_record([make_call()]), {}, {})


def test_incomplete_run_is_marked(make_record: Make) -> None:
    """The page of an incomplete record says how many calls are missing, even if there are no calls at all."""
    assert "was interrupted: it has 0 of the 3 calls planned" in html(make_record(complete=False), {}, {})
    assert "was interrupted" not in html(make_record(), {}, {})


def test_failures_and_skips_are_listed(make_record: Make, make_call: Callable[..., Call]) -> None:
    """Failures are listed with code, count and message, and skipped tools with the reason."""
    failed = [make_call(iteration=n, status="error", error_code="TIMEOUT", error="too <late>") for n in (1, 2)]
    text = html(make_record(failed, skipped=(Skipped(tool_name="other", reason="no <arguments>"),)), {}, {})
    assert "<td>echo<td>TIMEOUT<td>2<td>too &lt;late&gt;" in text
    assert "<td>other<td>no &lt;arguments&gt;" in text


@pytest.mark.parametrize(("calls", "titles"), [(49, []), (50, ["p90"]), (100, ["p90", "p95"])])
def test_quantiles_need_calls_beyond_them(
    make_record: Make, make_call: Callable[..., Call], calls: int, titles: list[str]
) -> None:
    """A quantile has a column only if five calls are expected beyond it; median and maximum are always there."""
    text = html(make_record([make_call(iteration=n, latency_ms=float(n)) for n in range(1, calls + 1)]), {}, {})
    assert re.findall(r"<th>(p9\d) ms", text) == titles
    assert re.findall(r"<th>(p50|max) ms", text) == ["p50", "max"]


def test_one_caller_has_no_throughput(make_record: Make, make_call: Callable[..., Call]) -> None:
    """Its calls per second are only the inverse of its latency; those of several callers are a finding."""
    assert "calls/s" not in html(make_record([make_call()]), {}, {})
    text = html(make_record([make_call(), make_call(load=Load(concurrency=8))]), {}, {})
    assert re.findall(r'<td data-title="calls/s">([^<]*)', text) == ["", "500.0"]


def test_success_is_a_sentence_if_nothing_failed(make_record: Make, make_call: Callable[..., Call]) -> None:
    """There is no chart of equal lines."""
    assert "Every call succeeded, 1 at once." in html(make_record([make_call()]), {}, {})
    failed = make_record([make_call(status="error", error_code="TIMEOUT")])
    drawn = {"success": b""}
    assert "Every call succeeded" not in html(failed, drawn, drawn)


def test_each_figure_has_its_title_on_a_narrow_screen(make_record: Make, make_call: Callable[..., Call]) -> None:
    """There the head of the table is hidden, so each cell names its column."""
    text = html(make_record([make_call()]), {}, {})
    titles = re.findall(r"<th>([^<]+)", text.partition("</thead>")[0])
    assert re.findall(r'data-title="([^"]+)"', text) == titles
