"""The report: a self-contained page, and its charts as files."""

import base64
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Final

from .pictures import pictures, png
from .plan import planned
from .record import Estimate, Record, Summary
from .table import SIMULATED, counted, interval, written

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
    "success": ("Success rates", "Share of calls answered without an error."),
}
_STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;color:#1f2933;background:#fff;max-width:1080px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;margin-bottom:.2rem} h2{font-size:1.15rem;margin-top:2.2rem} img{max-width:100%;height:auto}
table{border-collapse:collapse;font-size:.85rem;width:100%} .wide{overflow-x:auto}
th,td{padding:.22rem .5rem;border-bottom:1px solid #e4e7eb;text-align:right;white-space:nowrap}
th:first-child,td:first-child,.words th,.words td{text-align:left} .words td{white-space:normal}
th:first-child,td:first-child{position:sticky;left:0;background:#fff;white-space:nowrap} .wide img{min-width:720px}
.simulated{background:#c8372d;color:#fff;padding:.6rem 1rem;font-weight:600;border-radius:4px}
.cut{background:#fdf3dc;padding:.6rem 1rem;border-radius:4px} .faint{color:#6b7785} .bad{color:#c8372d;font-weight:600}
"""


def write_report(record: Record, directory: Path) -> Path:
    """Write ``index.html`` and the charts into the directory, creating it if needed; returns the page's path.

    Raises:
        OSError: they cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    drawn = {name: png(figure) for name, figure in pictures(record).items()}
    for name, content in drawn.items():
        (directory / f"{name}.png").write_bytes(content)
    page = directory / "index.html"
    page.write_text(html(record, drawn), "utf-8")
    return page


def html(record: Record, drawn: dict[str, bytes]) -> str:
    """The page; ``drawn`` are PNGs by name."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>Baseline {escape(record.id)}</title><style>{_STYLE}</style>",
        f"<h1>Baseline {escape(record.id)}</h1>",
        f"<p class=faint>{escape(_sentence(record))}</p>",
        f"<p class=simulated>{escape(SIMULATED)}</p>" if record.simulated else "",
        "" if record.complete else f"<p class=cut>{_interrupted(record)}</p>",
        "<h2>All tools</h2>",
        _summaries(record),
    ]
    for name, content in drawn.items():
        source = base64.b64encode(content).decode("ascii")
        title, meaning = _CAPTIONS[name]
        parts.append(
            f"<h2 id={name}>{title}</h2><p>{meaning}</p>"
            f"<div class=wide><img alt='{title}' src='data:image/png;base64,{source}'></div>"
        )
    if "throughput" not in drawn:
        parts.append(
            "<p class=faint>Throughput against concurrency needs several: collect.py --concurrency 1,2,4,8,16,32</p>"
        )
    parts += [_failures(record), _skipped(record), _setting(record)]
    return "\n".join(part for part in parts if part) + "\n"


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
    several = len(record.configuration.loads) > 1
    titles = ["tool", "load"] if several else ["tool"]
    titles += ["calls", "failed", "p50 ms", "p50's 95 %", "p90 ms", "p95 ms", "p99 ms", "max ms", "calls/s"]
    head = "".join(f"<th>{title}" for title in titles)
    rows = "".join(_row(summary, several=several) for summary in record.summaries)
    return (
        f"<div class=wide><table><tr>{head}</tr>{rows}</table></div>"
        "<p class=faint>Latencies of the successful calls. "
        f"Quantiles: {escape(record.quantile_method)}. Intervals: {escape(record.interval_method)}. "
        "* too few calls for this quantile: it is close to the maximum.</p>"
    )


def _row(summary: Summary, *, several: bool) -> str:
    failed = summary.count - summary.successes
    cells = [
        escape(summary.tool_name),
        *([summary.load.label] if several else []),
        str(summary.count),
        f"<span class=bad>{failed}</span>" if failed else "",
    ]
    latency = summary.latency_ms
    if latency is None:
        cells += [""] * 6
    else:
        cells += [written(latency.p50.value), interval(latency.p50)]
        tails = ((latency.p90, 0.9), (latency.p95, 0.95), (latency.p99, 0.99))
        cells += [_tail(estimate, share, summary.successes) for estimate, share in tails]
        cells.append(written(latency.max))
    cells.append("" if summary.throughput_per_s is None else f"{summary.throughput_per_s:,.1f}")
    return "<tr>" + "".join(f"<td>{cell}" for cell in cells) + "</tr>"


def _tail(estimate: Estimate, share: float, successes: int) -> str:
    """Adds a star if less than one call is expected beyond the quantile."""
    return written(estimate.value) + ("*" if successes * (1 - share) < 1 else "")


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
