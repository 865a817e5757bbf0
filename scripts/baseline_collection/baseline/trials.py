"""Checks the comparison itself: runs of the same daemon against each other, and against one that was slowed."""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console

from .collecting import CollectionError
from .comparison import Comparison
from .intervals import rate
from .matrix import SHIPPED
from .record import SIMULATE, Record, RecordError, read
from .running import EXIT_INTERRUPTED, Wish, begin_run, candidate_path, draft_of, numbered
from .runs_by_turns import Runs, compare_by_turns
from .verdicts import SIGNIFICANCE

TOOLS: Final = (
    "echo",
    "version",
    "status",
    "listmodels",
    "sim_effect",
    "execute_batch",
    "chat",
    "consensus",
    "codereview",
    "kimi_chat_with_files",
    "kimi_upload_files",
    "glm_web_search",
)
"""Tools of each kind: with and without a permit, a journal, a model, files, or child calls."""
WAITING: Final = ("echo", "chat")
"""Tools with a configurable delay: in the daemon itself, and in the simulated vendor."""
SLOWED_TOOLS: Final = (*WAITING, "version", "status", "listmodels")
WAIT_S: Final = 0.1
SCALES: Final = (1.2, 1.5, 2.0)
"""The factors by which latencies are multiplied to estimate which changes would be found."""

EXIT_MANY: Final = 1


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a trial."""

    comparisons: int
    pairs: int
    """Pairs of runs per comparison."""
    iterations: int
    tools: tuple[str, ...]
    slower: float | None = None
    """The factor by which the second daemon's ``WAITING`` tools wait longer than ``WAIT_S``; None: no difference."""


class Alarm(msgspec.Struct, frozen=True):
    """A tool that was reported slower, faster, or failing more often."""

    tool: str
    verdict: str
    ratio: float


class Tally(msgspec.Struct):
    """The results of the comparisons so far."""

    comparisons: int = 0
    alarmed: int = 0
    verdicts: Counter[str] = msgspec.field(default_factory=Counter)
    """Of the tools that were not slowed."""
    found: Counter[str] = msgspec.field(default_factory=Counter)
    """How often each slowed tool was reported slower."""
    scaled: Counter[float] = msgspec.field(default_factory=Counter)
    """The number of tools that were reported slower after their latencies were multiplied."""
    tools: int = 0
    """The number of tools for which that was tried."""


def run_trials(plan: Plan, keep: Path | None) -> int:
    """Make the runs that are not in ``keep`` yet, and print the result of each comparison and of all. Returns the exit
    code.

    Raises:
        CollectionError, RecordError: a run could not be made, or a kept one belongs to another trial.
    """
    tally = Tally()
    with _directory(keep) as directory:
        matrices = _matrices(plan, directory)
        for number in range(1, plan.comparisons + 1):
            runs = [
                _runs(plan, matrices, numbered(directory / f"{number:03}.json", pair), candidate_first=pair % 2 == 0)
                for pair in range(1, plan.pairs + 1)
            ]
            sys.stdout.write(f"{number:3}: {_note(plan, runs, tally)}\n")
            sys.stdout.flush()
    sys.stdout.write(outcome(plan, tally) + "\n")
    return exit_code(tally)


def _note(plan: Plan, runs: Sequence[Runs], tally: Tally) -> str:
    """Count and print the result of a comparison."""
    slowed = WAITING if plan.slower else ()
    comparison = compare_by_turns(runs)
    false = alarms(comparison, slowed)
    tally.comparisons += 1
    tally.alarmed += bool(false)
    tally.verdicts.update(row.verdict for row in comparison.rows if row.tool_name not in slowed)
    found = [row.tool_name for row in comparison.rows if row.tool_name in slowed and row.verdict == "slower"]
    tally.found.update(found)
    if not plan.slower:
        tally.tools += len(plan.tools)
        tally.scaled.update(
            {scale: sum(_is_found(runs, tool, scale) for tool in plan.tools) for scale in SCALES},
        )
    reported = ", ".join(f"{alarm.tool} {alarm.verdict} ({alarm.ratio:.2f})" for alarm in false)
    busiest = max((record.contention or 0.0 for pair in runs for record in pair), default=0.0)
    return "; ".join(
        [
            f"false alarm: {reported}" if reported else "no false alarm",
            *([f"found slower: {', '.join(found) or 'none'}"] if slowed else []),
            f"something waited for a CPU for up to {busiest:.0%} of a run",
        ]
    )


def alarms(comparison: Comparison, slowed: Sequence[str] = ()) -> list[Alarm]:
    """The changes that a comparison reports for tools that were not ``slowed``."""
    found = []
    for row in comparison.rows:
        if row.tool_name not in slowed and (row.verdict in {"slower", "faster"} or row.fails_more):
            verdict = "fails more" if row.fails_more else row.verdict
            found.append(Alarm(row.tool_name, verdict, row.ratio.value if row.ratio else 1.0))
    return found


def exit_code(tally: Tally) -> int:
    """1 if so many false alarms are improbable (below the significance) at the specified rate; else 0."""
    if tally.comparisons == 0:
        return 0
    from scipy.stats import binomtest  # type: ignore[import-untyped] # it has no types

    chance = binomtest(tally.alarmed, tally.comparisons, SIGNIFICANCE, alternative="greater").pvalue
    return EXIT_MANY if chance < SIGNIFICANCE else 0


def outcome(plan: Plan, tally: Tally) -> str:
    """A few lines: false alarms with their interval, the verdicts, and the detected changes."""
    share = rate(tally.alarmed, tally.comparisons)
    said = ", ".join(f"{count} {verdict}" for verdict, count in tally.verdicts.most_common())
    alarmed = (
        f"{tally.alarmed} of {tally.comparisons} comparisons had a false alarm (95 %: {share.low:.0%} to "
        f"{share.high:.0%}; promised: {SIGNIFICANCE:.0%}). Of {tally.verdicts.total()} tools: {said}."
    )
    lines = [alarmed]
    if plan.slower:
        found = ", ".join(f"{tool} in {tally.found[tool]}" for tool in WAITING)
        lines.append(f"Really slower by {plan.slower - 1:.0%}, and found, of {tally.comparisons}: {found}.")
    lines += [
        f"With one tool's later latencies multiplied by {scale:g}, it was called slower in {tally.scaled[scale]} of "
        f"{tally.tools}."
        for scale in SCALES
        if tally.tools
    ]
    return "\n".join(lines)


def _is_found(runs: Sequence[Runs], tool: str, scale: float) -> bool:
    scaled = [(before, with_slower(after, tool, scale)) for before, after in runs]
    return any(row.tool_name == tool and row.verdict == "slower" for row in compare_by_turns(scaled).rows)


def with_slower(record: Record, tool: str, scale: float) -> Record:
    """The record with this tool's latencies multiplied."""
    calls = tuple(
        msgspec.structs.replace(call, latency_ms=call.latency_ms * scale) if call.tool_name == tool else call
        for call in record.calls
    )
    return msgspec.structs.replace(record, calls=calls)


def _runs(plan: Plan, matrices: tuple[Path, Path], out: Path, *, candidate_first: bool) -> Runs:
    """An alternating pair of runs, new or kept."""
    paths = out, candidate_path(out)
    if not all(path.exists() and not draft_of(path).exists() for path in paths):
        for path in paths:  # an interrupted pair is repeated: its remaining calls would not alternate
            path.unlink(missing_ok=True)
            draft_of(path).unlink(missing_ok=True)
        wish = Wish(
            daemon=SIMULATE,
            candidate=SIMULATE,
            tools=plan.tools,
            iterations=plan.iterations,
            matrix=matrices[0],
            candidate_matrix=matrices[1],
        )
        code = begin_run(wish, out, Console(file=StringIO()), candidate_first=candidate_first, table=False)
        if code == EXIT_INTERRUPTED:
            raise KeyboardInterrupt
        if code != 0:
            raise CollectionError(f"the run of {out.name} was not complete")
    before, after = read(out), read(candidate_path(out))
    asked = before.configuration
    if (asked.tools, asked.iterations) != (plan.tools, plan.iterations):
        raise RecordError(f"{out} was kept from a trial with other options; name another --keep")
    # The arguments slowed the daemon, and must not prevent the comparison.
    same = msgspec.structs.replace(after.configuration, arguments=asked.arguments)
    return before, msgspec.structs.replace(after, configuration=same)


def _matrices(plan: Plan, directory: Path) -> tuple[Path, Path]:
    """The matrices of both sides: the shipped one, or one with delays for some tools."""
    if plan.slower is None:
        return SHIPPED, SHIPPED
    before, after = directory / "before.toml", directory / "after.toml"
    for path, wait_s in ((before, WAIT_S), (after, WAIT_S * plan.slower)):
        path.write_text(
            f'[tools.echo]\narguments = {{ text = "a line", delay_ms = {1000 * wait_s:g} }}\n'
            f'[tools.chat]\narguments = {{ prompt = "Hello. [[sim:delay={wait_s:g}]]" }}\n'
            "[tools.version]\n[tools.status]\n[tools.listmodels]\n",
            "utf-8",
        )
    return before, after


@contextmanager
def _directory(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="toold-baseline-aa-") as directory:
        yield Path(directory)
