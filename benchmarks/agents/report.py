"""The rounds as a Markdown table, and in full as JSON."""

import datetime as dt
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgspec

from ..report import RESULTS, machine
from .flow import AGENTS, CALLS, MODEL_S, RUNS, TURNS
from .measure import ADK, PYDANTIC_AI, TOOLD, Round, Seen

NAMES: Final = (TOOLD, ADK, PYDANTIC_AI)


def markdown(seen: Seen, loaded_mib: Mapping[str, float]) -> str:
    """Medians of the rounds, the ratios of CPU time within a round, and the verdict."""
    rows = [
        ("CPU time per turn", _medians(seen, lambda each: each.cpu_ms, "{:.2f} ms")),
        ("of it to toold's, within a round", [_ratio(seen, name) for name in NAMES]),
        ("a turn beyond the model's time, p50", _medians(seen, lambda each: each.p50_ms, "{:,.0f} ms")),
        ("the same, p99", _medians(seen, lambda each: each.p99_ms, "{:,.0f} ms")),
        (
            f"{RUNS} runs, each {TURNS * MODEL_S:g} s of the model",
            _medians(seen, lambda each: each.seconds, "{:.1f} s"),
        ),
        (f"memory with {AGENTS} agents", [f"{loaded_mib[name]:.0f} MiB" for name in NAMES]),
        (f"memory at the peak of {RUNS} runs", _medians(seen, lambda each: each.peak_mib, "{:.0f} MiB")),
    ]
    lines = ["| | " + " | ".join(NAMES) + " |", "|---|" + "---|" * len(NAMES)]
    lines += [f"| {name} | {' | '.join(cells)} |" for name, cells in rows]
    verdict = "met" if is_met(seen) else "missed"
    return (
        "\n".join(lines) + f"\n\nTarget, less CPU time per turn than both: {verdict}. A run has {CALLS} tool calls.\n"
    )


def is_met(seen: Seen) -> bool:
    """Whether toold takes less CPU time per turn than both others, by the medians."""
    ours = median(each.cpu_ms for each in seen[TOOLD])
    return all(ours < median(each.cpu_ms for each in seen[name]) for name in (ADK, PYDANTIC_AI))


def _medians(seen: Seen, figure: Callable[[Round], float], form: str) -> list[str]:
    return [form.format(median(figure(each) for each in seen[name])) for name in NAMES]


def _ratio(seen: Seen, name: str) -> str:
    ratios = [theirs.cpu_ms / ours.cpu_ms for theirs, ours in zip(seen[name], seen[TOOLD], strict=True)]
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def write(seen: Seen, about: Mapping[str, str], loaded_mib: Mapping[str, float], now: dt.datetime) -> Path:
    """Write all rounds to ``results/agents-<date>.json``, the table to an ``.md`` file. Returns the first path."""
    record: dict[str, Any] = {
        "date": now,
        "machine": machine(),
        "programs": about,
        "loaded_mib": loaded_mib,
        "flow": {"agents": AGENTS, "runs": RUNS, "turns": TURNS, "calls": CALLS, "model_s": MODEL_S},
        "rounds": seen,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"agents-{now:%Y-%m-%dT%H%M%SZ}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
    path.with_suffix(".md").write_text(markdown(seen, loaded_mib), encoding="utf-8")
    return path
