"""``toold agents runs``: the recorded runs of agents, and one run turn by turn."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click
import msgspec

from ..client import CallResult
from ..protocol.agent_record import AGENT_RUN_STATES, MAX_LISTED_RUNS
from ..protocol.error_codes import CallError, ErrorCode
from .console_tables import Row, print_table
from .daemon_connection import CommandFailedError, connected, run
from .status_command import cell, when
from .terminal_output import say, say_json

RUNS: Final[Row] = ("RUN", "AGENT", "STATE", "STARTED", "TURNS", "CALLS", "TOKENS", "COST", "NOTE")
_CALL_ID: Final = re.compile(r"[0-9a-f]{12}-[0-9a-f]+(?:[/~].*)?")
"""Matches the id of a call; other words are names of agents."""
_MAX_LINE: Final = 300
"""The number of characters shown of a call's arguments; --json has the whole arguments."""


@click.command("runs", short_help="List recorded runs, or show a run turn by turn.")
@click.argument("words", nargs=-1, metavar="[AGENT | show RUN]")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(AGENT_RUN_STATES),
    help="Show only runs in this state; may be repeated.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_LISTED_RUNS),
    default=20,
    show_default=True,
    help="Show at most this many runs, the newest.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(words: Sequence[str], states: Sequence[str], limit: int, as_json: bool) -> None:
    """List the newest runs of all agents or of AGENT; with the operator right, those of all principals.

    `runs show RUN`, or `runs RUN`, shows a run turn by turn: role, model, text, tool calls with arguments, tokens and
    cost. It also lists the parts that are no longer stored.
    """
    shown = _run_of(words)
    arguments: dict[str, Any] = {"run_id": shown}
    if shown is None:
        arguments = {"limit": limit, "states": list(states), **({"agent": words[0]} if words else {})}
    answer = run(agent_tool("agent_runs", arguments)).structured
    if as_json:
        say_json(msgspec.json.encode(answer))
    elif shown is not None:
        for line in run_lines(answer):
            say(line)
    elif answer["runs"]:
        print_table(RUNS, run_rows(answer["runs"]), shrink="NOTE")
    else:
        say("No such run is recorded." if words or states else "No run is recorded; runs are listed for seven days.")


def _run_of(words: Sequence[str]) -> str | None:
    """The run that the command line names; None if it requests a list."""
    if len(words) == 2 and words[0] == "show":
        return words[1]
    if len(words) > 1:
        raise click.UsageError("use `runs`, `runs AGENT` or `runs show RUN`")
    return words[0] if words and _CALL_ID.fullmatch(words[0]) else None


async def agent_tool(tool: str, arguments: dict[str, Any]) -> CallResult:
    """The result of a call of one of the tools for recorded runs.

    Raises:
        CommandFailedError: the daemon has no agents, so it does not have these tools.
    """
    async with connected(all_tools=True) as client:
        try:
            result = await client.call(tool, arguments)
        except CallError as error:
            if error.code is ErrorCode.TOOL_NOT_FOUND:
                raise CommandFailedError(f"the daemon has no agents, or your token may not call {tool}") from error
            raise
    if result.metadata.spilled:
        say(f"the answer is too large to be sent; it is in a file: {result.text}", err=True)
        sys.exit(1)
    return result


def run_rows(runs: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The rows of the table of runs."""
    return [
        (
            run["run_id"],
            run["agent"],
            run["state"],
            when(run["started_at"]),
            str(run["turns"]),
            str(run["calls"]),
            f"{run['input_tokens'] + run['output_tokens']:,}",
            money(run["cost"]),
            _note(run),
        )
        for run in runs
    ]


def money(cost: Mapping[str, float]) -> str:
    """Amounts by currency, such as ``0.0012 USD``."""
    return ", ".join(f"{amount:.6g} {currency}" for currency, amount in cost.items() if amount) or "-"


def _note(run: Mapping[str, Any]) -> str:
    if run["state"] == "paused":
        count = run.get("requests", 0)
        waiting = "1 request waits" if count == 1 else f"{count} requests wait"
        return f"{waiting}: toold agents decide {run['call_id']}"
    return cell(run.get("error") or (f"stopped by {run['stopped_by']}" if run.get("stopped_by") else None))


def run_lines(run: Mapping[str, Any]) -> Iterator[str]:
    """A run for people, turn by turn."""
    yield f"{run['agent']}  {run['run_id']}  {run['state']}  {when(run['started_at'])}"
    tokens = f"{run['input_tokens']:,} + {run['output_tokens']:,} tokens"
    yield f"{run['turns']} turns, {run['calls']} calls, {tokens}, {money(run['cost'])}"
    for field, label in (("error", "error"), ("message", "message"), ("stopped_by", "stopped by")):
        if run.get(field):
            yield f"{label}: {run[field]}"
    if run["state"] == "paused":
        yield _note(run)
    if run.get("prompt"):
        yield f"prompt: {run['prompt']}"
    for step in run["steps"]:
        yield ""
        yield _step_line(step)
        if step.get("text"):
            yield _indented(step["text"])
        for call in step["calls"]:
            yield _call_line(call)
    yield from _notes(run)


def _notes(run: Mapping[str, Any]) -> Iterator[str]:
    """The parts of the run that are listed elsewhere, no longer stored, or hidden."""
    if run.get("nested_runs"):
        yield "\nruns of other agents: " + ", ".join(f"{run['run_id']}/{path}" for path in run["nested_runs"])
    if run.get("not_kept"):
        yield f"\nno longer stored: {', '.join(run['not_kept'])}. {run['kept']}"
    if run.get("hidden"):
        yield f"\n{run['hidden']}"


def _step_line(step: Mapping[str, Any]) -> str:
    usage, latency = step.get("usage"), step.get("latency_ms")
    parts = [
        step["id"],
        step["role"],
        step.get("model", ""),
        "summary of older messages" if step.get("summary") else "",
    ]
    if step["state"] != "ok":
        parts.append(f"{step['state']} {step.get('error', '')}".strip())
    if step.get("attempts", 1) > 1:
        parts.append(f"{step['attempts']} attempts")
    if usage:
        parts.append(f"{usage['input_tokens']:,} + {usage['output_tokens']:,} tokens")
    if step.get("cost") and step["cost"]["amount"]:
        parts.append(money({step["cost"]["currency"]: step["cost"]["amount"]}))
    if latency is not None:
        parts.append(f"{latency:.0f} ms")
    return "  ".join(part for part in parts if part)


def _call_line(call: Mapping[str, Any]) -> str:
    arguments = " ".join(call.get("arguments", "").split())
    shown = arguments if len(arguments) <= _MAX_LINE else f"{arguments[:_MAX_LINE]}…"
    state = call.get("error") or call["state"].replace("_", " ")
    return f"  → {call['function']} {shown}  {state}, {call.get('result_bytes', 0):,} bytes"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
