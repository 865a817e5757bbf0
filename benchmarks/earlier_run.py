"""Compares a run of ``make bench`` with the last one of the same machine, by the statistics of the baselines."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from baseline.intervals import ratio_of_medians
from baseline.two_runs import rank_test

from .measure import Ratios

THRESHOLD: Final = 0.1
"""The change that counts, and the largest p-value, as for the baselines (docs/baselines.md, Compare)."""
MAX_P: Final = 0.05

_SAME: Final = ("system", "processor", "cores", "memory_mib", "python")
"""The fields of ``report.machine`` that two runs must have in common."""


class EarlierRun(msgspec.Struct, frozen=True):
    """What a record of ``make bench`` has of an earlier run."""

    date: str
    machine: dict[str, Any]
    ratios: Ratios


def last_run(results: Path, machine: Mapping[str, Any]) -> EarlierRun | None:
    """The last run on this machine among the records in a directory; None if there is none with ratios."""
    for path in sorted(results.glob("bench-*.json"), reverse=True):
        try:
            run = msgspec.json.decode(path.read_bytes(), type=EarlierRun)
        except msgspec.DecodeError:  # of a version without ratios, or cut short
            continue
        if all(run.machine.get(name) == machine.get(name) for name in _SAME):
            return run
    return None


def compared(earlier: EarlierRun, now: Ratios) -> str:
    """A line for each ratio: the change since the earlier run, with its interval and the verdict."""
    lines = [f"compared with the run of {earlier.date[:16]}, by round and relative to the bare server:"]
    for name, before, after, better in (
        ("CPU/call", earlier.ratios.cpu_per_call, now.cpu_per_call, "less"),
        ("calls/s", earlier.ratios.calls_per_s, now.calls_per_s, "more"),
    ):
        lines.append(f"  {name}: {_change(before, after, better)}")
    return "\n".join(lines)


def _change(before: tuple[float, ...], after: tuple[float, ...], better: str) -> str:
    if min(len(before), len(after)) < 2 or min(*before, *after) <= 0:
        return "not enough data"
    ratio = ratio_of_medians(before, after)
    p, _ = rank_test(before, after)
    low, high = ratio.low or 0.0, ratio.high or 0.0
    if low > 1 / (1 + THRESHOLD) and high < 1 + THRESHOLD:
        verdict = "same"
    elif abs(ratio.value - 1) > THRESHOLD and not low <= 1 <= high and p <= MAX_P:
        verdict = "better" if (ratio.value < 1) is (better == "less") else "worse"
    else:
        verdict = "not enough data"
    return f"×{ratio.value:.2f} ({low:.2f} to {high:.2f}, p {p:.3f}): {verdict}"
