"""The report: a self-contained page, and its charts as files."""

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Final

from .pictures import NARROW, WIDTH, first_load, pictures, png
from .plan import planned
from .record import Record, Summary
from .table import FEWEST_BEYOND, SIMULATED, calls_per_s, counted, filled, latency_cells

_CAPTIONS: Final = {
    "latency": (
        "Latency",
        "Time from sending a call to its answer; at a fixed rate, from the time at which the call was due.",
    ),
    "layers": (
        "Where the time goes",
        "How a call spent its time, by the daemon's timings, and the remainder that only the client sees.",
    ),
    "over-the-run": (
        "Over the run",
        "Each call at its start time. A trend or a step means that earlier and later calls are not comparable.",
    ),
    "throughput": (
        "Throughput",
        "Throughput by concurrency. Beyond the knee, additional calls mostly wait.",
    ),
    "success": ("Success rates", "Share of calls answered without an error, for the tools that had errors."),
}
_STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;color:#1f2933;background:#fff;max-width:1080px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;margin-bottom:.2rem} h2{font-size:1.15rem;margin-top:2.2rem} img{max-width:100%;height:auto}
table{border-collapse:collapse;font-size:.85rem;width:100%} .wide{overflow-x:auto}
th,td{padding:.22rem .5rem;border-bottom:1px solid #e4e7eb;text-align:right;white-space:nowrap}
th:first-child,td:first-child,.words th,.words td{text-align:left} .words td{white-space:normal}
th:first-child,td:first-child{position:sticky;left:0;background:#fff;white-space:nowrap}
@media(max-width:600px){.tools thead{display:none} h1{font-size:1.2rem;overflow-wrap:anywhere}
.tools tr{display:block;padding:.35rem 0;border-bottom:1px solid #e4e7eb}
.tools td{display:inline-block;border:0;padding:0 .5rem 0 0} .tools td:first-child{display:block;font-weight:600}
.tools td:empty{display:none}
.tools td:not(:first-child)::before{content:attr(data-title) " ";color:#6b7785}
.words td{overflow-wrap:anywhere}}
.simulated{background:#c8372d;color:#fff;padding:.6rem 1rem;font-weight:600;border-radius:4px}
.cut{background:#fdf3dc;padding:.6rem 1rem;border-radius:4px} .faint{color:#6b7785} .bad{color:#c8372d;font-weight:600}
"""


def write_report(record: Record, directory: Path) -> Path:
    """Write ``index.html`` and the charts into the directory, creating it if needed; returns the page's path.

    Raises:
        OSError: they cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    drawn, narrow = (
        {name: png(figure) for name, figure in pictures(record, width).items()} for width in (WIDTH, NARROW)
    )
    for name, content in drawn.items():
        (directory / f"{name}.png").write_bytes(content)
    page = directory / "index.html"
    page.write_text(html(record, drawn, narrow), "utf-8")
    return page


def html(record: Record, drawn: Mapping[str, bytes], narrow: Mapping[str, bytes]) -> str:
    """The page; ``drawn`` are PNGs by name, and ``narrow`` the same for narrow screens."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width,initial-scale=1'>",
        f"<title>Baseline {escape(record.id)}</title><style>{_STYLE}</style>",
        f"<h1>Baseline {escape(record.id)}</h1>",
        f"<p class=faint>{escape(_sentence(record))}</p>",
        f"<p class=simulated>{escape(SIMULATED)}</p>" if record.simulated else "",
        "" if record.complete else f"<p class=cut>{_interrupted(record)}</p>",
        "<h2>All tools</h2>",
        _summaries(record),
    ]
    for name, content in drawn.items():
        title, meaning = _CAPTIONS[name]
        small = f"<source media='(max-width:600px)' srcset='{_embedded(narrow[name])}'>"
        parts.append(
            f"<h2 id={name}>{title}</h2><p>{meaning}</p>"
            f"<picture>{small}<img alt='{title}' src='{_embedded(content)}'></picture>"
        )
    if record.calls and "success" not in drawn:
        parts.append(f"<h2 id=success>Success rates</h2><p>Every call succeeded, {first_load(record).label}.</p>")
    if "throughput" not in drawn:
        parts.append(
            "<p class=faint>Throughput against concurrency needs several: collect.py --concurrency 1,2,4,8,16,32</p>"
        )
    parts += [_failures(record), _skipped(record), _setting(record)]
    return "\n".join(part for part in parts if part) + "\n"


def _embedded(content: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(content).decode('ascii')}"


def _sentence(record: Record) -> str:
    asked, now = record.configuration, record.environment
    loads = ", ".join(load.label for load in asked.loads)
    each = f"{asked.iterations} each" if len(asked.loads) == 1 else f"{asked.iterations} each at every load"
    return (
        f"{counted(len(record.calls), 'call')} of {counted(len(asked.tools), 'tool')}: {each} ({loads}), after "
        f"{asked.warmup} to warm up. {now.daemon} on {now.machine.processor}, {_moment(record.started)}."
    )


def _interrupted(record: Record) -> str:
    made, of = len(record.calls), planned(record.configuration)
    return f"The run was interrupted: it has {made:,} of the {counted(of, 'call')} planned."


def _moment(timestamp: str) -> str:
    return f"{datetime.fromisoformat(timestamp).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _summaries(record: Record) -> str:
    rows = [_cells(summary) for summary in record.summaries]
    titles = filled(rows, always=("tool", "calls", "p50 ms"))
    if len(record.configuration.loads) == 1:
        titles = [title for title in titles if title != "load"]
    head = "".join(f"<th>{title}" for title in titles)
    body = "".join(_row(row, titles) for row in rows)
    return (
        f"<div class=wide><table class=tools><thead><tr>{head}</tr></thead>{body}</table></div>"
        "<p class=faint>Latencies of the successful calls. "
        f"Quantiles: {escape(record.quantile_method)}. Intervals: {escape(record.interval_method)}. "
        f"A quantile is shown if at least {FEWEST_BEYOND} calls are expected beyond it: p90 from 50 calls, "
        "p95 from 100, p99 from 500.</p>"
    )


def _cells(summary: Summary) -> dict[str, str]:
    failed = summary.count - summary.successes
    return {
        "tool": escape(summary.tool_name),
        "load": summary.load.label,
        "calls": str(summary.count),
        "failed": f"<span class=bad>{failed}</span>" if failed else "",
        **latency_cells(summary),
        "calls/s": calls_per_s(summary),
    }


def _row(cells: Mapping[str, str], titles: Sequence[str]) -> str:
    """A line of the table; on a narrow screen a block, in which each figure follows its title."""
    return "<tr>" + "".join(f'<td data-title="{title}">{cells[title]}' for title in titles) + "</tr>"


def _failures(record: Record) -> str:
    seen: dict[tuple[str, str, str], int] = {}
    for call in record.calls:
        if call.status == "error":
            key = call.tool_name, call.error_code or "", call.error or ""
            seen[key] = seen.get(key, 0) + 1
    rows = "".join(
        f"<tr><td>{escape(tool)}<td>{escape(code)}<td>{count}<td>{escape(message)}</tr>"
        for (tool, code, message), count in seen.items()
    )
    head = "<tr><th>tool<th>code<th>calls<th>message</tr>"
    return f"<h2>Failures</h2><div class=wide><table class=words>{head}{rows}</table></div>" if rows else ""


def _skipped(record: Record) -> str:
    rows = "".join(f"<tr><td>{escape(one.tool_name)}<td>{escape(one.reason)}</tr>" for one in record.skipped)
    return f"<h2>Skipped tools</h2><table class=words><tr><th>tool<th>reason</tr>{rows}</table>" if rows else ""


def _setting(record: Record) -> str:
    now, machine = record.environment, record.environment.machine
    facts = {
        "machine": f"{machine.processor}, {machine.cores} cores, {machine.memory_mib or '?'} MiB; {machine.system}",
        "load average": ", ".join(f"{load:g}" for load in machine.load_average) + " at the start of the run",
        "contention": "unknown"
        if record.contention is None
        else f"{record.contention:.0%} of the time a task waited for a CPU",
        "Python": now.python,
        "packages": ", ".join(f"{name} {version}" for name, version in now.packages.items()),
        "commit": now.commit or "unknown",
        "daemon": f"{now.daemon}, {record.configuration.daemon}",
        "deadline": f"{record.configuration.timeout_s:g} s" if record.configuration.timeout_s else "the tools' own",
        "finished": _moment(record.finished) if record.finished else "",
    }
    rows = "".join(f"<tr><td>{name}<td>{escape(fact)}</tr>" for name, fact in facts.items())
    return f"<h2>Environment</h2><table class=words>{rows}</table>"
