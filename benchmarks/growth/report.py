"""The curves as a Markdown table, as JSON, and as a chart."""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import matplotlib as mpl
import msgspec
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from ..report import RESULTS, machine
from .curves import Curve

_COLUMNS: Final = 4
_FINE: Final = "#1f6f8b"
_STEEP: Final = "#c0392b"
_FAINT: Final = "#b8bec4"

mpl.use("agg")


def markdown(curves: Sequence[Curve]) -> str:
    """One row per curve: its ends, its slopes and the verdict."""
    lines = ["| | variable | from | to | slope | at the end | limit | |", "|---|---|---|---|---|---|---|---|"]
    for curve in curves:
        (first, cheap), (last, dear) = curve.points[0], curve.points[-1]
        verdict = "**too steep**" if curve.too_steep else ""
        lines.append(
            f"| {curve.name} | {curve.work} | {first:,}: {_figure(cheap)} {curve.cost} | {last:,}: {_figure(dear)} "
            f"| {curve.slope:.2f} | {curve.slope_at_end:.2f} | {curve.limit} | {verdict} |"
        )
    return "\n".join(lines) + "\n"


def _figure(cost: float) -> str:
    """Four significant digits, without an exponent."""
    return f"{float(f'{cost:.4g}'):,.10g}"


def write(curves: Sequence[Curve], seconds: float, now: dt.datetime) -> Path:
    """Write ``results/growth-<date>.json``, the table (``.md``) and the chart (``.png``). Returns the first path."""
    record = {
        "date": now,
        "seconds": round(seconds),
        "machine": machine(),
        "curves": [
            {"curve": one, "slope": one.slope, "slope_at_end": one.slope_at_end, "too_steep": one.too_steep}
            for one in curves
        ],
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"growth-{now:%Y-%m-%dT%H%M%SZ}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
    path.with_suffix(".md").write_text(markdown(curves), encoding="utf-8")
    draw(curves, path.with_suffix(".png"))
    return path


def draw(curves: Sequence[Curve], path: Path) -> None:
    """Draw each curve in its own chart on logarithmic axes; the dashed line has the limit's slope."""
    rows = -(-len(curves) // _COLUMNS)
    figure = Figure(figsize=(3.3 * _COLUMNS, 2.7 * rows), layout="constrained")
    fields = figure.subplots(rows, _COLUMNS, squeeze=False).flat
    for field, curve in zip(fields, curves, strict=False):
        _plot(field, curve)
    for field in list(fields):
        field.axis("off")
    figure.savefig(path, dpi=80)


def _plot(field: Axes, curve: Curve) -> None:
    works, costs = [work for work, _ in curve.points], [cost for _, cost in curve.points]
    colour = _STEEP if curve.too_steep else _FINE
    first = costs[0] if curve.limit == 0 else costs[-1] / works[-1] * works[0]
    field.plot([works[0], works[-1]], [first, first * (works[-1] / works[0]) ** curve.limit], "--", color=_FAINT)
    field.plot(works, costs, "o-", color=colour, markersize=4)
    field.set(xscale="log", yscale="log")
    field.set_xlabel(curve.work, fontsize=8)
    least, most = min(*costs, first), max(costs)
    field.set_ylim(least / 2, max(most * 2, least * 12))  # a few per cent of noise must not look like growth
    title = f"{curve.name}: {curve.cost}"
    field.set_title(title, fontsize=min(9.0, 420 / len(title)))  # a long title must not reach into the next chart
    field.text(0.04, 0.9, f"slope {curve.slope:.2f}", transform=field.transAxes, color=colour, fontsize=9)
    field.tick_params(labelsize=8)
    for axis in (field.xaxis, field.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.10g}"))
        axis.set_minor_formatter(NullFormatter())
    field.spines[["top", "right"]].set_visible(False)
