"""The result of comparing baselines: one row per tool and load, and other differences between the sides."""

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from .record import Call, Estimate, Load, Record
from .verdicts import Key, Options, Verdict


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One side's calls of the tool."""

    count: int
    successes: int
    median_ms: float | None


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One tool under one load."""

    tool_name: str
    load: Load
    before: Side
    after: Side
    ratio: Estimate | None
    """Ratio of the medians, after to before, with its 95 % interval: by bootstrap for two runs; for alternating runs
    the
    Hodges-Lehmann estimate of the pairs' ratios with the interval of the signed-rank test."""
    p: float | None
    """Uncorrected p-value of the Mann-Whitney test for two runs, by the number of independent calls; null for
    alternating
    runs, which are tested for all tools at once."""
    p_corrected: float | None
    """Corrected for the number of tools: with Holm's method for two runs, Westfall and Young's for alternating runs."""
    effect: float | None
    """Cliff's delta, from -1 to 1: how much more often a call of ``after`` is slower than faster; for alternating runs
    the mean over pairs."""
    effect_size: str | None
    verdict: Verdict
    because: str
    """The reason for the verdict, as text."""
    fails_more: bool
    """Whether it fails more often than before (Fisher's exact test, or by pairs of runs; corrected in the same way)."""
    p_failing: float | None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One side compared with an earlier one."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    """The ids of their records."""
    simulated: bool
    busy: str | None
    """Set if the machine was too busy to report any tool as slower or faster. Null if it was calm, if that is unknown,
    and
    for alternating runs."""
    side_by_side: bool
    """Whether the sides were collected in alternation, so that other load affected both."""
    options: Options
    notes: tuple[str, ...]
    """Other differences, which make the figures less conclusive."""
    rows: tuple[Row, ...]

    @property
    def worse(self) -> bool:
        """Whether any tool is slower or fails more often."""
        return any(row.verdict == "slower" or row.fails_more for row in self.rows)

    @property
    def by_turns(self) -> bool:
        """Whether it compares several pairs of alternating runs, not the calls of two runs."""
        return len(self.before) > 1


class IncomparableError(Exception):
    """The records cannot be compared; the message says why."""


def by_key(record: Record) -> dict[Key, list[Call]]:
    """The calls of each tool and load, in the order in which they were made."""
    groups: dict[Key, list[Call]] = defaultdict(list)
    for call in record.calls:
        groups[call.tool_name, call.load].append(call)
    return groups


def latencies(calls: list[Call]) -> list[float]:
    """The latencies of the successful calls, in milliseconds."""
    return [call.latency_ms for call in calls if call.status == "success"]


def same_arguments(before: Record, after: Record, tool: str) -> bool:
    """Whether both records called the tool with the same arguments."""
    return before.configuration.arguments.get(tool) == after.configuration.arguments.get(tool)


def side_of(calls: list[Call]) -> Side:
    """One side of a row, from these calls."""
    middle = sorted(latencies(calls))
    half = len(middle) // 2
    median = (middle[half] + middle[~half]) / 2 if middle else None
    return Side(count=len(calls), successes=len(middle), median_ms=median)


def differences(before: Record, after: Record) -> Iterator[str]:
    """Yields a sentence for each difference that makes the figures less conclusive."""
    old, new = before.environment, after.environment
    for what, one, other in (
        ("the machine", old.machine.processor, new.machine.processor),
        ("the number of cores", str(old.machine.cores), str(new.machine.cores)),
        ("the system", old.machine.system, new.machine.system),
        ("Python", old.python, new.python),
    ):
        if one != other:
            yield f"{what} differs: {one} before, {other} after"
    for record in (before, after):
        if not record.complete:
            yield f"{record.id} was interrupted: it has fewer calls than planned"
    if missing := sorted(set(before.configuration.tools) ^ set(after.configuration.tools)):
        yield f"only in one record: {', '.join(missing)}"
