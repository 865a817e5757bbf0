"""Compares two daemons by several pairs of alternating runs.

A pair of runs is one trial, regardless of its number of calls (see ``blocks``), so the verdicts are valid on a machine
with other load.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

import msgspec

from .blocks import MIN_BLOCKS, chances, middle, rank_effect
from .comparison import Comparison, IncomparableError, Row, by_key, differences, latencies, same_arguments, side_of
from .record import CHECKOUT, SIMULATE, Call, Estimate, Record
from .two_runs import failing_chance
from .verdicts import Key, Options, decide, effect_in_words, holm

MIN_CALLS: Final = 3
"""The successes that each run of a pair needs for the pair to count for a tool."""
THRESHOLD: Final = 0.1

Runs = tuple[Record, Record]


class _Blocks(msgspec.Struct, frozen=True):
    """All calls of one tool and load, one list per run; both sides in the order of the pairs."""

    before: list[list[Call]]
    after: list[list[Call]]
    same_arguments: bool

    def effects(self) -> list[float]:
        """Each pair's Cliff's delta; 0, which swapping sides does not change, for a pair with too few calls."""
        return [rank_effect(*pair) if min(map(len, pair)) >= MIN_CALLS else 0.0 for pair in self.latencies()]

    def more_failures(self) -> list[float]:
        """The increase of the share of failures from before to after, per pair."""
        shares = [[_share(calls) for calls in side] for side in (self.before, self.after)]
        return [new - old for old, new in zip(*shares, strict=True)]

    def ratios(self) -> list[float]:
        """The logarithms of the ratios of medians, for the pairs with enough calls."""
        enough = [pair for pair in self.latencies() if min(map(len, pair)) >= MIN_CALLS]
        return [math.log(median(new) / median(old)) for old, new in enough]

    def latencies(self) -> list[tuple[list[float], list[float]]]:
        pairs = zip(self.before, self.after, strict=True)
        return [(latencies(old), latencies(new)) for old, new in pairs]

    @property
    def enough(self) -> bool:
        return self.same_arguments and len(self.ratios()) >= MIN_BLOCKS


def pairs_of(records: Mapping[str, Record]) -> list[Runs]:
    """The alternating pairs, if there are several; none if the records are not pairs. ``records`` is keyed by file
    name.

    Raises:
        IncomparableError: some records belong to such pairs and others do not.
    """
    by_id = {record.id: record for record in records.values()}
    pairs = [(by_id[record.paired_run], record) for record in by_id.values() if record.paired_run in by_id]
    if not pairs or len(by_id) == 2:
        return []
    paired = {record.id for pair in pairs for record in pair}
    if alone := [name for name, record in records.items() if record.id not in paired]:
        raise IncomparableError(
            f"{alone[0]} was not collected in alternation with any of the others; remove it, or name "
            "the other record of its run too"
        )
    return pairs


def compare_by_turns(
    pairs: Sequence[Runs],
    options: Options = Options(threshold=THRESHOLD),  # noqa: B008 - it is frozen
) -> Comparison:
    """Compare the second runs of all pairs with the first ones, for tools and loads that all runs have.

    Raises:
        IncomparableError: some are simulated and others are not, or they have nothing in common.
    """
    pairs = sorted(pairs, key=lambda pair: pair[0].started)
    records = [record for pair in pairs for record in pair]
    if len({record.simulated for record in records}) > 1:
        raise IncomparableError("some of the records are simulated and others are real; they cannot be compared")
    blocks = _blocks(pairs)
    if not blocks:
        raise IncomparableError("the records have no tool under the same load in common")
    tested = chances({key: one.effects() for key, one in blocks.items() if one.enough})
    failing = _failing({key: one for key, one in blocks.items() if one.same_arguments}, len(pairs), options)
    return Comparison(
        before=tuple(old.id for old, _ in pairs),
        after=tuple(new.id for _, new in pairs),
        simulated=records[0].simulated,
        busy=None,
        side_by_side=True,
        options=options,
        notes=tuple(dict.fromkeys(_notes(pairs))),
        rows=tuple(_row(key, one, tested.get(key), failing.get(key), options) for key, one in blocks.items()),
    )


def _blocks(pairs: Sequence[Runs]) -> dict[Key, _Blocks]:
    calls = [(by_key(old), by_key(new)) for old, new in pairs]
    keys = [key for key in calls[0][0] if all(key in side for pair in calls for side in pair)]
    first = pairs[0][0]
    return {
        key: _Blocks(
            before=[old[key] for old, _ in calls],
            after=[new[key] for _, new in calls],
            same_arguments=all(same_arguments(first, record, key[0]) for pair in pairs for record in pair),
        )
        for key in keys
    }


def _failing(blocks: Mapping[Key, _Blocks], pairs: int, options: Options) -> dict[Key, float]:
    """The p-value of each tool's increase of failures. If there are too few pairs for a test by pairs, it is tested by
    calls, as for single runs, so that a broken tool is detected with few runs.
    """
    if 2.0**-pairs <= options.significance:
        return chances({key: one.more_failures() for key, one in blocks.items()}, upward=True)
    return holm({key: failing_chance(_all(one.before), _all(one.after)) for key, one in blocks.items()})


def _all(runs: Sequence[Sequence[Call]]) -> list[Call]:
    return [call for calls in runs for call in calls]


def _row(key: Key, blocks: _Blocks, p: float | None, p_failing: float | None, options: Options) -> Row:
    ratio, effect, verdict, because = None, None, "not enough data", _why_not_tested(blocks)
    if p is not None:
        logs = blocks.ratios()
        ratio = _exp(middle(logs))
        effect = math.fsum(blocks.effects()) / len(blocks.before)
        verdict, because = decide(ratio, p, len(logs), "pairs of runs", options)
    return Row(
        tool_name=key[0],
        load=key[1],
        before=side_of(_all(blocks.before)),
        after=side_of(_all(blocks.after)),
        ratio=ratio,
        p=None,
        p_corrected=p,
        effect=effect,
        effect_size=None if effect is None else effect_in_words(effect),
        verdict=verdict,  # type: ignore[arg-type] # one of the four
        because=because,
        fails_more=p_failing is not None and p_failing <= options.significance,
        p_failing=p_failing,
    )


def _exp(logs: Estimate) -> Estimate:
    low, high = (math.nan if bound is None else math.exp(bound) for bound in (logs.low, logs.high))
    return Estimate(value=math.exp(logs.value), low=low, high=high)


def _why_not_tested(blocks: _Blocks) -> str:
    if not blocks.same_arguments:
        return "it was called with other arguments"
    return (
        f"{len(blocks.ratios())} of {len(blocks.before)} pairs of runs have {MIN_CALLS} successes a side; "
        f"{MIN_BLOCKS} are the least"
    )


def _share(calls: Sequence[Call]) -> float:
    return sum(call.status == "error" for call in calls) / len(calls)


def _notes(pairs: Sequence[Runs]) -> list[str]:
    notes = [note for pair in pairs for note in differences(*pair)]
    if not {record.configuration.daemon for pair in pairs for record in pair} <= {SIMULATE, CHECKOUT}:
        notes.append(
            "a daemon that was not started for each run may have run on from pair to pair: what one start of a program "
            "happens to have is then in all of them"
        )
    for side, records in zip(("before", "after"), zip(*pairs, strict=True), strict=True):
        commits = list(dict.fromkeys(record.environment.commit or "unknown" for record in records))
        if len(commits) > 1:
            notes.append(f"the daemon {side} is of several commits: {', '.join(commits)}")
    notes += [
        f"{record.id} was continued by itself: that part was not made by turns"
        for pair in pairs
        for record in pair
        if any(call.segment > 1 for call in record.calls)
    ]
    return notes
