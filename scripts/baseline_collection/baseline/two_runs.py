"""Compares two runs by their calls. ``scipy.stats`` is imported at its use, since that takes more than a second."""

import math
from collections.abc import Sequence
from typing import Final

import msgspec

from .comparison import Comparison, IncomparableError, Row, by_key, differences, latencies, same_arguments, side_of
from .intervals import ratio_of_medians
from .record import Call, Record
from .verdicts import Key, Options, decide, effect_in_words, holm

MIN_CALLS: Final = 8
"""Successes per side. With fewer, even runs without a common latency are not significant among 30 tools."""
THRESHOLD: Final = 0.2
"""On a machine with other load, two processes of the same program were observed to differ by a tenth and more during
their whole lifetime. A single pair of runs cannot show a smaller change of the median."""
CALM_APART: Final = 0.25
CALM_SIDE_BY_SIDE: Final = 0.5
"""The highest share of a run in which a task may have waited for a CPU. Beyond it, latencies depend on CPU scheduling,
which may favor one of two equal processes for a whole run. Alternating runs have the same load and tolerate more."""


class _Pair(msgspec.Struct, frozen=True):
    """The calls of both sides."""

    before: list[Call]
    after: list[Call]
    same_arguments: bool

    def latencies(self) -> tuple[list[float], list[float]]:
        return latencies(self.before), latencies(self.after)

    @property
    def enough(self) -> bool:
        return self.same_arguments and min(len(side) for side in self.latencies()) >= MIN_CALLS


def compare(
    before: Record,
    after: Record,
    options: Options = Options(threshold=THRESHOLD),  # noqa: B008 - it is frozen
) -> Comparison:
    """Compare one record with an earlier one, for tools and loads that both have.

    Raises:
        IncomparableError: one is simulated and the other is not, or they have nothing in common.
    """
    if before.simulated != after.simulated:
        raise IncomparableError("one of the records is simulated and the other is real; they cannot be compared")
    pairs = _pairs(before, after)
    if not pairs:
        raise IncomparableError("the records have no tool under the same load in common")
    side_by_side = before.id == after.paired_run or after.id == before.paired_run
    busy = _busy(before, after, CALM_SIDE_BY_SIDE if side_by_side else CALM_APART)
    tested = {key: rank_test(*pair.latencies()) for key, pair in pairs.items() if pair.enough}
    failing = {key: failing_chance(pair.before, pair.after) for key, pair in pairs.items() if pair.same_arguments}
    corrected = holm({key: p for key, (p, _) in tested.items()})
    failing = holm(failing)
    rows = [
        _row(key, pair, tested.get(key), corrected.get(key), failing.get(key), options, busy)
        for key, pair in pairs.items()
    ]
    return Comparison(
        before=(before.id,),
        after=(after.id,),
        simulated=before.simulated,
        busy=busy,
        side_by_side=side_by_side,
        options=options,
        notes=tuple(_notes(before, after, side_by_side=side_by_side)),
        rows=tuple(rows),
    )


def _pairs(before: Record, after: Record) -> dict[Key, _Pair]:
    old, new = by_key(before), by_key(after)
    return {key: _Pair(old[key], new[key], same_arguments(before, after, key[0])) for key in old if key in new}


def rank_test(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """p, and Cliff's delta of after to before; both sides in the order in which their calls were made.

    The test takes calls for independent. Where a slow call is followed by slow ones, as on a machine with other work,
    there are fewer independent ones: z is scaled by their share, that of a first-order autoregressive series.
    """
    from scipy.stats import mannwhitneyu, norm  # type: ignore[import-untyped] # it has no types

    test = mannwhitneyu(after, before, alternative="two-sided")
    delta = float(2 * test.statistic / (len(before) * len(after)) - 1)
    follows = (following(before) + following(after)) / 2
    if follows == 0:
        return float(test.pvalue), delta
    z = norm.isf(test.pvalue / 2) * math.sqrt((1 - follows) / (1 + follows))
    return float(min(1.0, 2 * norm.sf(z))), delta


def following(values: Sequence[float]) -> float:
    """The correlation of each value's rank with that of the previous value, below 1; 0 or less if there is none."""
    from scipy.stats import rankdata

    ranks = rankdata(values)
    ranks -= ranks.mean()
    spread = float((ranks * ranks).sum())
    return max(0.0, float((ranks[1:] * ranks[:-1]).sum()) / spread) if spread > 0 else 0.0


def failing_chance(before: Sequence[Call], after: Sequence[Call]) -> float:
    """The p-value of the increase of failures (Fisher's exact test)."""
    table = [
        [sum(call.status == status for call in side) for status in ("error", "success")] for side in (after, before)
    ]
    if table[0][0] == 0:
        return 1.0
    from scipy.stats import fisher_exact

    return float(fisher_exact(table, alternative="greater").pvalue)


def _row(
    key: Key,
    pair: _Pair,
    test: tuple[float, float] | None,
    p_corrected: float | None,
    p_failing: float | None,
    options: Options,
    busy: str | None,
) -> Row:
    old, new = pair.latencies()
    ratio, verdict, because = None, "not enough data", _why_not_tested(pair)
    if test is not None and p_corrected is not None:
        ratio = ratio_of_medians(old, new)
        verdict, because = decide(ratio, p_corrected, min(len(old), len(new)), "calls", options)
        if busy and verdict in {"slower", "faster"}:
            verdict, because = "not enough data", f"{because}, but {busy}"
    return Row(
        tool_name=key[0],
        load=key[1],
        before=side_of(pair.before),
        after=side_of(pair.after),
        ratio=ratio,
        p=test[0] if test else None,
        p_corrected=p_corrected,
        effect=test[1] if test else None,
        effect_size=effect_in_words(test[1]) if test else None,
        verdict=verdict,  # type: ignore[arg-type] # one of the four
        because=because,
        fails_more=p_failing is not None and p_failing <= options.significance,
        p_failing=p_failing,
    )


def _why_not_tested(pair: _Pair) -> str:
    if not pair.same_arguments:
        return "it was called with other arguments"
    fewest = min(len(side) for side in pair.latencies())
    return f"{fewest} {'success' if fewest == 1 else 'successes'} on one side; {MIN_CALLS} are the least"


def _busy(before: Record, after: Record, calm: float) -> str | None:
    """Why a change may be caused by the machine; None if it was calm or its contention is unknown."""
    most = max(before.contention or 0.0, after.contention or 0.0)
    return f"the machine was busy ({most:.0%} of a run something waited for a CPU)" if most > calm else None


def _notes(before: Record, after: Record, *, side_by_side: bool) -> list[str]:
    apart = (
        "the runs were made one after the other: what else the machine did is in the figures; "
        "collect.py --candidate takes turns between two daemons"
    )
    return [*([] if side_by_side else [apart]), *differences(before, after)]
