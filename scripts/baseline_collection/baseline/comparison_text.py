"""Renders comparisons as Markdown."""

from collections.abc import Sequence
from typing import Final

from .blocks import MIN_BLOCKS
from .comparison import Comparison, Row, Side
from .record import Estimate
from .table import written
from .two_runs import MIN_CALLS

_ORDER: Final = ("slower", "faster", "same", "not enough data")


def as_markdown(comparisons: Sequence[Comparison]) -> str:
    """One section per comparison: the headline first, then every tool."""
    return "\n".join(_section(comparison) for comparison in comparisons)


def _section(comparison: Comparison) -> str:
    lines = [f"# {_named(comparison.after)} against {_named(comparison.before)}", ""]
    if comparison.simulated:
        lines += ["**SIMULATED: no vendor was asked. Latencies of tools that ask one are simulated.**", ""]
    lines += [f"- {note}" for note in comparison.notes]
    lines += ["", _headline(comparison), ""]
    lines += ["| tool | load | before | after | ratio (95 %) | p | effect | verdict | reason |", "|---" * 9 + "|"]
    lines += [_line(row) for row in sorted(comparison.rows, key=_rank)]
    lines += ["", _legend(comparison), ""]
    return "\n".join(lines)


def _named(ids: Sequence[str]) -> str:
    return ids[0] if len(ids) == 1 else f"{ids[0]} and {len(ids) - 1} more"


def _legend(comparison: Comparison) -> str:
    beyond, p = f"{comparison.options.threshold:.0%}", f"{comparison.options.significance:g}"
    if comparison.by_turns:
        return (
            f"Medians of the successful calls, in ms, of {len(comparison.before)} pairs of alternating runs; each pair "
            "is one trial. Ratio: the Hodges-Lehmann estimate of the pairs' ratios of medians, with the interval of "
            f"the signed-rank test. Slower or faster: beyond {beyond}, its interval excludes 1, and p ≤ "
            f"{p}, the probability of such ranks for any tool if the sides of each pair were labelled at random "
            f"(Westfall-Young). Same: the whole interval is within {beyond}. At least {MIN_BLOCKS} pairs. Effect: the "
            "pairs' mean Cliff's delta."
        )
    return (
        f"Medians of the successful calls, in ms. Slower or faster: the ratio of medians is beyond {beyond}, its "
        f"bootstrap interval excludes 1, and the rank test (Mann-Whitney by independent calls, Holm-corrected for the "
        f"tools tested) has p ≤ {p}. Same: the whole interval is within {beyond}. At least {MIN_CALLS} successes per "
        "side. Effect: Cliff's delta."
    )


def _headline(comparison: Comparison) -> str:
    counts = {verdict: sum(row.verdict == verdict for row in comparison.rows) for verdict in _ORDER}
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    failing = sum(row.fails_more for row in comparison.rows)
    return f"**{verdicts}{f'; {failing} failing more often' if failing else ''}.**"


def _rank(row: Row) -> tuple[bool, int, str, str]:
    return not row.fails_more, _ORDER.index(row.verdict), row.tool_name, row.load.label


def _line(row: Row) -> str:
    verdict = f"**{row.verdict}**" if row.verdict in {"slower", "faster"} else row.verdict
    why = row.because
    if row.fails_more:
        verdict += ", **fails more often**"
        why += f"; {_failures(row.before)} failed before, {_failures(row.after)} now"
    cells = (
        f"`{row.tool_name}`",
        row.load.label,
        _median(row.before),
        _median(row.after),
        _ratio(row.ratio),
        "" if row.p_corrected is None else f"{row.p_corrected:.2g}",
        "" if row.effect is None else f"{row.effect:+.2f} {row.effect_size}",
        verdict,
        why,
    )
    return "| " + " | ".join(cells) + " |"


def _median(side: Side) -> str:
    return "" if side.median_ms is None else written(side.median_ms)


def _failures(side: Side) -> str:
    return f"{side.count - side.successes} of {side.count}"


def _ratio(ratio: Estimate | None) -> str:
    return "" if ratio is None else f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"
