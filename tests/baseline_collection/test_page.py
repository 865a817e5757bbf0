"""The report: one self-contained page, pictures as files next to it, and escaped names."""

import re
from collections.abc import Callable
from pathlib import Path

from baseline.page import html, write_report
from baseline.record import Call, Record, Skipped

Make = Callable[..., Record]


def test_page_is_self_contained(tmp_path: Path, make_record: Make, make_call: Callable[..., Call]) -> None:
    """The page embeds the pictures and loads nothing. The same pictures are written as files."""
    page = write_report(make_record([make_call(iteration=n) for n in range(1, 4)]), tmp_path / "new" / "report")
    text = page.read_text("utf-8")
    assert page == tmp_path / "new" / "report" / "index.html"
    assert not re.search(r"(?:src|href)=(?!'data:)", text)
    assert "<script" not in text
    names = sorted(path.name for path in page.parent.glob("*.png"))
    assert names == ["latency.png", "layers.png", "over-the-run.png", "success.png"]
    assert text.count("data:image/png;base64,") == len(names)


def test_simulated_run_has_a_banner(make_record: Make, make_call: Callable[..., Call]) -> None:
    """A simulated run has a banner, a real one does not."""
    assert "class=simulated>SIMULATED" in html(make_record([make_call()], simulated=True), {})
    assert "SIMULATED" not in html(make_record([make_call()]), {})


def test_incomplete_run_is_marked(make_record: Make) -> None:
    """The page of an incomplete record says how many calls are missing, even if there are no calls at all."""
    assert "was interrupted: it has 0 of the 3 calls planned" in html(make_record(complete=False), {})
    assert "was interrupted" not in html(make_record(), {})


def test_failures_and_skips_are_listed(make_record: Make, make_call: Callable[..., Call]) -> None:
    """Failures are listed with code, count and message, and skipped tools with the reason."""
    failed = [make_call(iteration=n, status="error", error_code="TIMEOUT", error="too <late>") for n in (1, 2)]
    text = html(make_record(failed, skipped=(Skipped(tool_name="other", reason="no <arguments>"),)), {})
    assert "<td>echo<td>TIMEOUT<td>2<td>too &lt;late&gt;" in text
    assert "<td>other<td>no &lt;arguments&gt;" in text


def test_quantiles_beyond_the_calls_are_marked(make_record: Make, make_call: Callable[..., Call]) -> None:
    """With 20 calls the 0.95-quantile is within the values; the 0.99-quantile is not, and has a star."""
    text = html(make_record([make_call(iteration=n, latency_ms=float(n)) for n in range(1, 21)]), {})
    assert re.search(r"<td>19\.\d<td>20\*<td>20<", text)
