"""``toold calls``: what runs now and what ended last, by session."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click
import msgspec

from .console_tables import Row, print_table
from .operator_client import ask
from .status_command import cell, duration, when

RUNNING: Final[Row] = ("SESSION", "PRINCIPAL", "TOOL", "STATE", "AGE", "LEFT", "ID", "PROGRESS")
ENDED: Final[Row] = ("SESSION", "PRINCIPAL", "TOOL", "OUTCOME", "LATENCY", "WHEN", "ID")

Call = Mapping[str, Any]


@click.command(short_help="Show the calls that run, and the last ones, by session.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--recent", type=click.IntRange(0, 100), default=10, show_default=True, help="How many ended calls to show."
)
def command(as_json: bool, recent: int) -> None:
    """Show every call that is not answered yet, and those that ended last; never their arguments. What a call made
    stands behind it.

    \b
    waiting   for its turn, behind others
    running   its tool is at work
    ending    it was told to end: cancelled, or out of time

    `toold cancel ID` ends one.
    """
    calls = ask("GET", "/calls", recent=recent)
    if as_json:
        click.echo(msgspec.json.encode(calls))
        return
    if calls["running"]:
        print_table(RUNNING, running_rows(calls["running"]), title="Running", gives_way="PROGRESS")
    else:
        click.echo("No call runs.")
    if calls["recent"]:
        click.echo()
        print_table(ENDED, ended_rows(calls["recent"]), title="Ended", gives_way="SESSION")


def running_rows(calls: Sequence[Call]) -> list[Row]:
    """The table of what runs: each session's calls together, its oldest call first."""
    return [
        (
            session,
            cell(call["principal"]),
            tool,
            cell(call["state"]),
            duration(call["age_s"]),
            duration(call["left_s"]),
            cell(call["id"]),
            _progress(call["progress"]),
        )
        for session, tool, call in by_session(calls)
    ]


def ended_rows(calls: Sequence[Call]) -> list[Row]:
    """The table of what ended: each session's calls together, its last one first. Of today's the time alone."""
    today = time.strftime("%Y-%m-%d ")
    return [
        (
            session,
            cell(call["principal"]),
            tool,
            cell(call["outcome"]),
            f"{call['latency_ms']:.0f} ms",
            when(call["started_at"]).removeprefix(today),
            cell(call["id"]),
        )
        for session, tool, call in by_session(calls)
    ]


def by_session(calls: Sequence[Call]) -> list[tuple[str, str, Call]]:
    """Each call with its session's name and its tool's, those of one session together, and behind a call those that it
    made, with their tools indented; else in the order in which they came.

    A label is the client's choice: where two sessions have the same, a part of the session's id tells them apart.
    """
    sessions: dict[str, list[Call]] = {}
    labels: dict[str, set[str]] = {}
    for call in calls:
        sessions.setdefault(call["session_id"], []).append(call)
        labels.setdefault(call["session"], set()).add(call["session_id"])
    named = []
    for session_id, group in sessions.items():
        label = group[0]["session"]
        name = f"{label} ({session_id[:6]})" if len(labels[label]) > 1 else label
        named += [(cell(name or None), _indented(call, depth), call) for depth, call in in_families(group)]
    return named


def in_families(calls: Sequence[Call]) -> Iterator[tuple[int, Call]]:
    """Each call with how many of those that made it are shown above it. A child's id is its parent's, and more."""
    shown = {call["id"] for call in calls}
    made: dict[str, list[Call]] = {}
    for call in calls:
        parent = call["id"].rpartition("/")[0]
        made.setdefault(parent if parent in shown else "", []).append(call)

    def below(parent: str, depth: int) -> Iterator[tuple[int, Call]]:
        for call in made.get(parent, ()):
            yield depth, call
            yield from below(call["id"], depth + 1)

    return below("", 0)


def _indented(call: Call, depth: int) -> str:
    return f"{'  ' * (depth - 1)}└ {cell(call['tool'])}" if depth else cell(call["tool"])


def _progress(progress: Mapping[str, Any] | None) -> str:
    if progress is None:
        return "-"
    message, done, total = (progress.get(part) for part in ("message", "done", "total"))
    if done is None:
        return cell(message)
    return f"{cell(message)} ({cell(done)}{'' if total is None else f' of {cell(total)}'})"
