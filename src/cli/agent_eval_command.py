"""``toold agents eval``: runs a file of cases several times, and reports how often each one passes."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from .agent_runs_command import money
from .console_tables import Row, print_table
from .daemon_connection import connected, run
from .terminal_output import say, say_json

if TYPE_CHECKING:
    from .agent_evals import CaseOutcome, EvalCase, EvalFile, RunOutcome

CASES: Final[Row] = ("CASE", "AGENT", "PASSED", "RATE", "95 % INTERVAL", "WANTED", "COST", "RESULT")


@click.command("eval", short_help="Run a file of cases, and report how often each one passes.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--runs", type=click.IntRange(1, 100), metavar="N", help="Runs of each case.  [default: the file's]")
@click.option(
    "--min-pass",
    type=click.FloatRange(0, 1),
    metavar="RATE",
    help="The pass rate, from 0 to 1, that a case must reach if it sets none.  [default: the file's]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(file: Path, runs: int | None, min_pass: float | None, as_json: bool) -> None:
    """Run the cases of FILE (YAML, TOML or JSON; docs/agents.md) and check the calls and the answer of each run.

    Exits with 1 if a case passes less often than required. The runs ask models, which costs money. Ctrl-C cancels all
    runs.
    """
    from .agent_evals import MAX_TOTAL_RUNS, EvalFileError, read_eval_file, runs_of

    try:
        cases = read_eval_file(file)
    except EvalFileError as error:
        raise click.UsageError(str(error)) from None
    total = sum(runs_of(cases, runs))
    if total > MAX_TOTAL_RUNS:
        raise click.UsageError(f"the cases make {total:,} runs; at most {MAX_TOTAL_RUNS:,} are allowed")
    outcomes = run(_evaluated(cases, runs, min_pass, total))
    data = [outcome.data() for outcome in outcomes]
    if as_json:
        say_json(msgspec.json.encode({"reached": all(case["reached"] for case in data), "cases": data}))
    else:
        print_table(CASES, case_rows(data), shrink="CASE")
        for line in failure_lines(data):
            say(line)
    sys.exit(any(not case["reached"] for case in data))


async def _evaluated(file: "EvalFile", runs: int | None, min_pass: float | None, total: int) -> "Sequence[CaseOutcome]":
    from .agent_evals import EvalRunner, unknown_agent

    ended = 0

    def report(case: "EvalCase", outcome: "RunOutcome") -> None:
        nonlocal ended
        ended += 1
        said = "passed" if outcome.passed else outcome.failures[0]
        say(f"{ended}/{total} {case.name}: {said}", err=True)

    async with connected(all_tools=True) as client:
        problem = unknown_agent(file, (tool.name for tool in await client.list_tools()))
        if problem is not None:
            raise click.UsageError(problem)
        return await EvalRunner(client, file, report).run(runs=runs, min_pass=min_pass)


def case_rows(cases: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The rows of the table of cases."""
    return [
        (
            case["name"],
            case["agent"],
            f"{case['passed']}/{case['runs']}",
            f"{case['rate']:.0%}",
            f"{case['interval'][0]:.0%} to {case['interval'][1]:.0%}",
            f"{case['min_pass']:.0%}",
            money(case["cost"]),
            "ok" if case["reached"] else "failed",
        )
        for case in cases
    ]


def failure_lines(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The failures: each reason once per case, with its number of runs and the id of one of them."""
    for case in cases:
        reasons: Counter[str] = Counter()
        example: dict[str, str] = {}
        for outcome in case["outcomes"]:
            for reason in outcome.get("failures", ()):
                reasons[reason] += 1
                example.setdefault(reason, outcome.get("run_id") or "")
        for reason, times in reasons.most_common():
            shown = f"; toold agents runs show {example[reason]}" if example[reason] else ""
            yield f"{case['name']}: {reason} ({times} of {case['runs']} runs{shown})"
