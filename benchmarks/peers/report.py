"""The rounds as Markdown tables, and in full as JSON."""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgspec

from ..driving import Driven
from ..report import RESULTS, machine
from .measure import BARE, FASTMCP, HTTP, SDK, SOCKET, Plan, Seen

_ALL: Final = (BARE, SOCKET, HTTP, SDK, FASTMCP)
_PAIRS: Final = ((SOCKET, BARE), (HTTP, SDK), (HTTP, FASTMCP), (SOCKET, FASTMCP))
"""The pairs of servers that are compared."""

Figure = Callable[[Driven], float | None]


def markdown(seen: Seen, plan: Plan) -> str:
    """The tables: medians of the rounds, ratios within a round, and failures."""
    rounds = "one round" if plan.rounds == 1 else f"{plan.rounds} rounds"
    parts = [
        f"Calls per second, medians of {rounds}:",
        _table(seen, lambda one: one.calls / one.seconds, "{:,.0f}"),
        "CPU time of the server per call, in µs:",
        _table(seen, _cpu_us, "{:,.0f}"),
        "Latency from sending a call to its complete answer, in ms, p50:",
        _table(seen, lambda one: one.p50_ms, "{:,.2f}"),
        "Latency, p99:",
        _table(seen, lambda one: one.p99_ms, "{:,.2f}"),
        "Ratios of calls per second and of CPU time per call within a round; above 1 the first server is better:",
        _ratios(seen),
        _failures(seen),
    ]
    return "\n\n".join(parts) + "\n"


def write(seen: Seen, about: Mapping[str, str], plan: Plan, seconds: float, now: dt.datetime) -> Path:
    """Write all rounds to ``results/peers-<date>.json``, the tables to an ``.md`` file. Returns the first path."""
    record: dict[str, Any] = {
        "date": now,
        "seconds": round(seconds),
        "machine": machine(),
        "servers": about,
        "plan": plan,
        "cells": [{"workload": cell[0], "clients": cell[1], "rounds": rounds} for cell, rounds in seen.items()],
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"peers-{now:%Y-%m-%dT%H%M%SZ}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
    path.with_suffix(".md").write_text(markdown(seen, plan), encoding="utf-8")
    return path


def _cpu_us(one: Driven) -> float | None:
    return one.cpu_s / one.calls * 1e6 if one.calls else None


def _median(figures: Sequence[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return median(known) if known else None


def _shown(number: float | None, form: str) -> str:
    return "–" if number is None else form.format(number)


def _table(seen: Seen, figure: Figure, form: str) -> str:
    rows = [
        [workload, f"{clients}", *(_shown(_median([figure(one) for one in sides[name]]), form) for name in _ALL)]
        for (workload, clients), sides in seen.items()
    ]
    return _lines(["", "clients", *_ALL], rows)


def _ratios(seen: Seen) -> str:
    rows = []
    for (workload, clients), sides in seen.items():
        row = [workload, f"{clients}"]
        for one, other in _PAIRS:
            speed, effort = [], []
            for mine, theirs in zip(sides[one], sides[other], strict=True):
                if mine.calls and theirs.calls:
                    speed.append(mine.calls / mine.seconds / (theirs.calls / theirs.seconds))
                    known = mine.cpu_s and theirs.cpu_s  # below the resolution of CPU time
                    effort.append(theirs.cpu_s / theirs.calls / (mine.cpu_s / mine.calls) if known else None)
            row.append(f"{_shown(_median(speed), '{:.2f}')}, {_shown(_median(effort), '{:.2f}')}")
        rows.append(row)
    return _lines(["", "clients", *(f"{one} : {other}" for one, other in _PAIRS)], rows)


def _failures(seen: Seen) -> str:
    rows = [
        [name, workload, f"{clients}", f"{sum(one.calls for one in rounds):,}", f"{failed:,}", f"{broken:,}", why]
        for (workload, clients), sides in seen.items()
        for name, rounds in sides.items()
        for failed, broken, why in [_failed(rounds)]
        if failed or broken
    ]
    if not rows:
        return "No call failed, and no client had to reconnect."
    heading = ["", "", "clients", "calls answered", "failed", "reconnects", "reasons"]
    return "Failures in all rounds, with the warm-up:\n\n" + _lines(heading, rows)


def _failed(rounds: Sequence[Driven]) -> tuple[int, int, str]:
    whys = sorted({why for one in rounds for why in one.errors})
    return sum(sum(one.errors.values()) for one in rounds), sum(one.reconnects for one in rounds), "; ".join(whys)


def _lines(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    table = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in table)
