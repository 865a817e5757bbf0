"""The charts of a report, drawn by matplotlib without a display. Each function takes a record and returns a figure.

matplotlib takes a second to import, so it is imported at its use.
"""

from __future__ import annotations

import io
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from textwrap import fill
from typing import TYPE_CHECKING, Final

from .knee import knee
from .record import Call, Layers, Load, Record, Summary
from .table import has_enough, written

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK: Final = "#1f2933"
FAINT: Final = "#9aa5b1"
GRID: Final = "#e4e7eb"
BLUE: Final = "#2f6db5"
RED: Final = "#c8372d"
DPI: Final = 130
WIDTH: Final = 10.0
"""Inches."""
NARROW: Final = 4.4
"""Inches, for screens of about 420 pixels: there, the letters of a wider chart would be too small to read."""
LAYERS: Final = (
    ("provider_ms", "providers", "#e08e2b"),
    ("tool_ms", "tool", "#2f6db5"),
    ("queue_ms", "waiting for permits", "#9b5fb0"),
    ("daemon_ms", "rest of the daemon", "#6b9ac4"),
    ("connection_ms", "connection and client", "#b8c4ce"),
    ("late_ms", "before it was sent", "#4b5563"),
)
_ROW: Final = 0.27
"""The height of one tool in a list of tools, in inches."""
_NAMES: Final = 1.5
"""The width of the tools' names, in inches."""
_TITLE: Final = 0.35
"""The margin at the top, in inches."""
_CHART: Final = 2.1
"""The width of one of many small charts, in inches."""
_SHORT_AXIS: Final = 4.0
"""A logarithmic axis whose end is less than this factor times its start has hardly any tick at 1, 2 or 5."""


def png(figure: Figure) -> bytes:
    """The figure as a PNG file."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=DPI)
    return out.getvalue()


def pictures(record: Record, width: float = WIDTH) -> dict[str, Figure]:
    """All charts for which the record has calls, by file name, of this width in inches."""
    drawn: dict[str, Callable[[Record, float], Figure | None]] = {
        "latency": latency_picture,
        "layers": layers_picture,
        "over-the-run": run_picture,
        "throughput": throughput_picture,
        "success": success_picture,
    }
    made = {name: draw(record, width) for name, draw in drawn.items()}
    return {name: figure for name, figure in made.items() if figure is not None}


def first_load(record: Record) -> Load:
    """The load that charts of single tools show: the lightest one."""
    return record.configuration.loads[0]


def latency_picture(record: Record, width: float = WIDTH) -> Figure | None:
    """Each tool's latencies as a box and as points, slowest first, on a logarithmic axis."""
    groups = _latencies(record)
    if not groups:
        return None
    figure, axes = _list_of_tools(record, width, len(groups), f"Latency, {first_load(record).label}")
    values = [latencies for _, latencies in groups]
    enough = all(has_enough(len(latencies), 0.95) for latencies in values)
    whiskers, ends = ((5, 95), "5 % to 95 %") if enough else ((0, 100), "all calls")
    axes.boxplot(
        values,
        positions=range(len(values)),
        orientation="horizontal",
        widths=0.55,
        whis=whiskers,
        showfliers=False,
        patch_artist=True,
        boxprops={"facecolor": "#d5e3f3", "edgecolor": BLUE},
        medianprops={"color": RED, "linewidth": 1.6},
        whiskerprops={"color": BLUE},
        capprops={"color": BLUE},
    )
    for place, latencies in enumerate(values):
        spread = [place + 0.3 * math.sin(12.9898 * number) for number in range(len(latencies))]
        axes.scatter(latencies, spread, s=5, color=INK, alpha=_alpha(len(latencies)), linewidths=0, zorder=3)
    axes.set_xscale("log")
    _milliseconds(axes)
    axes.set_yticks(range(len(groups)), [tool for tool, _ in groups])
    _list_limits(axes, len(groups), f"ms (logarithmic); box: the middle half, red: median, whiskers: {ends}")
    return figure


def layers_picture(record: Record, width: float = WIDTH) -> Figure | None:
    """Each tool's mean latency as shares of the layers, next to its value in milliseconds."""
    found = [summary for summary in _shown(record) if summary.layers]
    if not found:
        return None
    found.sort(key=lambda summary: sum(_parts(summary.layers)))
    figure, axes = _list_of_tools(record, width, len(found), f"Where the time goes, {first_load(record).label}")
    names = [summary.tool_name for summary in found]
    sums = [sum(_parts(summary.layers)) for summary in found]
    left = [0.0] * len(found)
    for field, label, colour in LAYERS:
        shares = [100 * getattr(summary.layers, field) / total for summary, total in zip(found, sums, strict=True)]
        if max(shares) < 0.05:
            continue
        axes.barh(names, shares, left=left, height=0.72, color=colour, label=label)
        left = [start + share for start, share in zip(left, shares, strict=True)]
    for place, total in enumerate(sums):
        _beside(axes, place, written(total))
    axes.set_xlim(0, 100)
    _list_limits(axes, len(found), "% of the mean latency, which stands at the right in ms")
    figure.legend(loc="outside lower center", ncols=max(2, int(0.6 * width)), frameon=False, fontsize=8)
    return figure


def run_picture(record: Record, width: float = WIDTH) -> Figure | None:
    """Each call's latency by its start time, one small chart per tool; crosses mark failures."""
    groups: dict[str, list[Call]] = defaultdict(list)
    for call in record.calls:
        if call.load == first_load(record):
            groups[call.tool_name].append(call)
    if not groups:
        return None
    names = sorted(groups)
    columns = int(width / _CHART) or 1
    height = 0.8 + 1.25 * math.ceil(len(names) / columns)
    figure = _figure(record, width, height=height, title=f"Latency over the run, {first_load(record).label}")
    for axes, name in zip(_small(figure, len(names), columns), names, strict=True):
        _run_of(axes, groups[name])
        axes.set_title(name, fontsize=8, loc="left", pad=2, color=INK)
    figure.supxlabel("seconds since the run began", fontsize=9, color=INK)
    figure.supylabel("ms (log.)" if len(names) <= columns else "ms (logarithmic)", fontsize=9, color=INK)
    return figure


def throughput_picture(record: Record, width: float = WIDTH) -> Figure | None:
    """Throughput against concurrency, one small chart per tool with the knee marked; None for a single concurrency."""
    curves: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for summary in record.summaries:
        if summary.load.concurrency is not None and summary.throughput_per_s is not None:
            curves[summary.tool_name].append((summary.load.concurrency, summary.throughput_per_s))
    curves = {name: sorted(points) for name, points in curves.items() if len(points) > 1}
    if not curves:
        return None
    names = list(curves)
    columns = min(int(width / 3) or 1, math.ceil(math.sqrt(len(names))))
    figure = _figure(
        record,
        width,
        height=0.9 + 2.7 * math.ceil(len(names) / columns),
        title="Throughput against concurrency, the knee marked",
    )
    for axes, name in zip(_small(figure, len(names), columns), names, strict=True):
        _curve(axes, curves[name])
        axes.set_title(name, fontsize=9, loc="left", pad=3, color=INK)
    figure.supxlabel("calls at once", fontsize=9, color=INK)
    figure.supylabel("successes a second", fontsize=9, color=INK)
    return figure


def success_picture(record: Record, width: float = WIDTH) -> Figure | None:
    """The success rate, with its interval, of each tool that had errors, lowest first; None if no tool had any."""
    found = [summary for summary in _shown(record) if summary.successes < summary.count]
    found.sort(key=lambda one: (one.success_rate.value, one.tool_name), reverse=True)
    if not found:
        return None
    figure, axes = _list_of_tools(record, width, len(found), f"Success rates, {first_load(record).label}")
    for place, summary in enumerate(found):
        estimate = summary.success_rate
        low, high = estimate.low or 0.0, 1.0 if estimate.high is None else estimate.high
        axes.plot([100 * low, 100 * high], [place, place], color=RED, linewidth=2, alpha=0.45, solid_capstyle="butt")
        axes.plot([100 * estimate.value], [place], "o", color=RED, markersize=4.5)
        _beside(axes, place, f"{summary.successes} of {summary.count}")
    axes.set_yticks(range(len(found)), [summary.tool_name for summary in found])
    lowest = min(summary.success_rate.low or 0.0 for summary in found)
    axes.set_xlim(max(-1.0, min(90.0, 100 * lowest - 4)), 100.6)
    _list_limits(axes, len(found), "% of the calls; line: the interval of 95 % (Wilson)")
    return figure


# --- parts of the charts ---------------------------------------------------------------------------------------------


def _shown(record: Record) -> list[Summary]:
    return [summary for summary in record.summaries if summary.load == first_load(record)]


def _latencies(record: Record) -> list[tuple[str, list[float]]]:
    """The latencies by tool, fastest first, because a list of tools is drawn from the bottom."""
    groups: dict[str, list[float]] = defaultdict(list)
    for call in record.calls:
        if call.load == first_load(record) and call.status == "success":
            groups[call.tool_name].append(call.latency_ms)
    return sorted(groups.items(), key=lambda item: median(item[1]))


def _parts(layers: Layers | None) -> list[float]:
    return [getattr(layers, field) for field, _, _ in LAYERS] if layers else []


def _figure(record: Record, width: float, *, height: float, title: str) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(rect=(0, 0, 1, 1 - _TITLE / height))
    figure = Figure(figsize=(width, height), layout=layout, facecolor="white")
    top, size = 1 - 0.08 / height, 12 if width > NARROW else 9
    figure.text(0.01, top, title, ha="left", va="top", fontsize=size, fontweight="bold", color=INK)
    if record.simulated:
        figure.text(0.99, top, "SIMULATED", ha="right", va="top", fontsize=size, fontweight="bold", color=RED)
    return figure


def _list_of_tools(record: Record, width: float, tools: int, title: str) -> tuple[Figure, Axes]:
    figure = _figure(record, width, height=1.2 + _ROW * tools, title=title)
    axes = figure.add_subplot()
    _plain(axes)
    axes.grid(axis="x", color=GRID, linewidth=0.8)
    axes.tick_params(axis="y", length=0)
    return figure, axes


def _beside(axes: Axes, place: int, text: str) -> None:
    """A text to the right of a tool's line."""
    axes.text(1.01, place, text, transform=axes.get_yaxis_transform(), va="center", fontsize=8, color=INK)


def _list_limits(axes: Axes, tools: int, label: str) -> None:
    """Set the limits of a list of tools, after everything is drawn, since drawing changes them."""
    axes.set_ylim(-0.6, tools - 0.4)
    inches = axes.figure.bbox.width / axes.figure.dpi - _NAMES
    axes.set_xlabel(fill(label, int(14 * inches)), fontsize=9, color=INK)


def _small(figure: Figure, count: int, columns: int) -> Iterator[Axes]:
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    for place in range(count):
        axes = figure.add_subplot(rows, columns, place + 1)
        _plain(axes)
        axes.grid(color=GRID, linewidth=0.6)
        yield axes


def _plain(axes: Axes) -> None:
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(which="both", colors=INK, labelsize=8)


def _run_of(axes: Axes, calls: Sequence[Call]) -> None:
    for status, marker, colour, size in (("success", "o", BLUE, 10), ("error", "x", RED, 18)):
        some = [call for call in calls if call.status == status]
        axes.scatter(
            [call.offset_s for call in some],
            [max(call.latency_ms, 1e-3) for call in some],
            s=size,
            marker=marker,
            color=colour,
            alpha=_alpha(len(some)) if status == "success" else 1,
            linewidths=0 if marker == "o" else 1.2,
        )
    axes.set_yscale("log")
    axes.margins(y=0.15)
    _milliseconds(axes, across=False)
    axes.tick_params(which="both", labelsize=7)


def _curve(axes: Axes, points: Sequence[tuple[float, float]]) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.plot([x for x, _ in points], [y for _, y in points], "-o", color=BLUE, markersize=4)
    axes.set_ylim(0, 1.18 * max(y for _, y in points))
    axes.set_xscale("log", base=2)
    axes.set_xticks([x for x, _ in points], [f"{x:g}" for x, _ in points])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    bend = knee(points)
    if bend is None:
        axes.annotate("no knee", (0, 0), (5, 5), "axes fraction", "offset points", fontsize=8, color=FAINT)
        return
    height = dict(points)[bend]
    axes.plot([bend], [height], "o", markersize=10, markerfacecolor="none", markeredgecolor=RED, markeredgewidth=1.8)
    axes.axvline(bend, color=RED, linewidth=0.9, linestyle=":")
    axes.annotate(
        f"knee at {bend:g}: {height:,.0f}/s", (bend, 0), (5, 5), textcoords="offset points", fontsize=8, color=RED
    )


def _milliseconds(axes: Axes, *, across: bool = True) -> None:
    """Plain numbers on a logarithmic axis: at 1, 2 and 5 if the axis is short, and at round values if it is narrow."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    axis = axes.xaxis if across else axes.yaxis
    low, high = axis.get_view_interval()
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if high / low < _SHORT_AXIS:
        axis.set_major_locator(MaxNLocator(8 if across else 3))
        axis.set_minor_locator(NullLocator())
        return
    short = high / low < (100 if across else 60)
    axis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}" if short and f"{value:e}"[0] in "25" else ""))


def _alpha(count: int) -> float:
    return max(0.25, min(0.7, 40 / max(count, 1)))
