"""What a comparison of baselines says: one row a tool and load, and how the sides differ otherwise."""

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
    """Of the medians, after to before, with its interval of 95 %: a bootstrap one for two runs; for runs by turns the
    middle of the pairs' ratios, and the interval of the signed-rank test."""
    p: float | None
    """Of the rank test, uncorrected: Mann and Whitney's for two runs, by the number of calls that are independent; null
    for runs by turns, whose chance is counted for all tools at once."""
    p_corrected: float | None
    """Corrected for the number of tools: by Holm's method for two runs, by Westfall and Young's for runs by turns."""
    effect: float | None
    """Cliff's delta: how much oftener a call of after is the slower one than the faster one, from -1 to 1; for runs by
    turns the mean over pairs."""
    effect_size: str | None
    verdict: Verdict
    because: str
    """Why that, in words."""
    fails_more: bool
    """Whether it fails more often than before (Fisher's exact test, or by pairs of runs; corrected alike)."""
    p_failing: float | None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One side against an earlier one."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    """The ids of their records."""
    simulated: bool
    busy: str | None
    """Why no tool is called slower or faster whatever its figures: the machine was busy. Null where it was calm, where
    nobody knows, and for runs by turns."""
    side_by_side: bool
    """Whether the sides were collected turn by turn, so that the rest of the machine's work is in both alike."""
    options: Options
    notes: tuple[str, ...]
    """What else is different, and makes the figures say less."""
    rows: tuple[Row, ...]

    @property
    def worse(self) -> bool:
        """Whether any tool is slower or fails more."""
        return any(row.verdict == "slower" or row.fails_more for row in self.rows)

    @property
    def by_turns(self) -> bool:
        """Whether it comes from several pairs of runs by turns, and not from the calls of two runs."""
        return len(self.before) > 1


class IncomparableError(Exception):
    """The records do not tell anything about each other; the message says why."""


def by_key(record: Record) -> dict[Key, list[Call]]:
    """The calls of each tool and load, in the order in which they were made."""
    groups: dict[Key, list[Call]] = defaultdict(list)
    for call in record.calls:
        groups[call.tool_name, call.load].append(call)
    return groups


def latencies(calls: list[Call]) -> list[float]:
    """In milliseconds, of those that succeeded."""
    return [call.latency_ms for call in calls if call.status == "success"]


def same_arguments(before: Record, after: Record, tool: str) -> bool:
    """Whether both called the tool alike."""
    return before.configuration.arguments.get(tool) == after.configuration.arguments.get(tool)


def side_of(calls: list[Call]) -> Side:
    """What a row says of these calls."""
    middle = sorted(latencies(calls))
    half = len(middle) // 2
    median = (middle[half] + middle[~half]) / 2 if middle else None
    return Side(count=len(calls), successes=len(middle), median_ms=median)


def differences(before: Record, after: Record) -> Iterator[str]:
    """What is another on the two sides, and makes their figures say less; a sentence each."""
    old, new = before.environment, after.environment
    for what, one, other in (
        ("the machine", old.machine.processor, new.machine.processor),
        ("the number of cores", str(old.machine.cores), str(new.machine.cores)),
        ("the system", old.machine.system, new.machine.system),
        ("Python", old.python, new.python),
    ):
        if one != other:
            yield f"{what} is another one: {one} before, {other} after"
    for record in (before, after):
        if not record.complete:
            yield f"{record.id} was cut off: it has fewer calls than were planned"
    if missing := sorted(set(before.configuration.tools) ^ set(after.configuration.tools)):
        yield f"in one record alone: {', '.join(missing)}"
