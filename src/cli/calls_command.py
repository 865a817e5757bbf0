"""``toold calls``: running and recent calls, by session."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click
import msgspec

from .console_tables import Row, print_table
from .operator_client import operator_request
from .status_command import cell, duration, when
from .terminal_output import say, say_json

RUNNING: Final[Row] = ("SESSION", "PRINCIPAL", "TOOL", "STATE", "AGE", "LEFT", "ID", "PROGRESS")
NODE: Final[Row] = ("NODE",)
"""The first column of running calls if several nodes share a database."""
ENDED: Final[Row] = ("SESSION", "PRINCIPAL", "TOOL", "OUTCOME", "LATENCY", "WHEN", "ID")

Call = Mapping[str, Any]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--recent",
    metavar="N",
    type=click.IntRange(0, 100),
    default=10,
    show_default=True,
    help="Number of ended calls to show.",
)
def command(as_json: bool, recent: int) -> None:
    """Show the running calls and the most recent ended ones, without their arguments. Child calls follow their parent.

    \b
    waiting   the call waits for a permit
    running   its tool runs
    ending    it was cancelled or its deadline has passed, but it has not ended yet

    `toold cancel ID` cancels a call.
    """
    calls = operator_request("GET", "/calls", recent=recent)
    if as_json:
        say_json(msgspec.json.encode(calls))
        return
    running, nodes = calls["running"], "unanswered" in calls
    if running:
        rows = running_rows(running)
        if nodes:
            rows = [(cell(call.get("node")), *row) for row, (*_, call) in zip(rows, by_session(running), strict=True)]
        print_table((*NODE, *RUNNING) if nodes else RUNNING, rows, title="Running", shrink="PROGRESS")
    else:
        say("No call is running.")
    for node in calls.get("unanswered", ()):
        say(f"The node {cell(node)} has not answered; its calls are not shown.")
    if calls["recent"]:
        say("")
        print_table(ENDED, ended_rows(calls["recent"]), title="Ended", shrink="SESSION")


def running_rows(calls: Sequence[Call]) -> list[Row]:
    """The rows of running calls, grouped by session, oldest first."""
    return [
        (
            session,
            cell(call["principal"]),
            tool,
            cell(call["state"]),
            duration(call["age_s"]),
            duration(call["remaining_s"]),
            cell(call["id"]),
            _progress(call["progress"]),
        )
        for session, tool, call in by_session(calls)
    ]


def ended_rows(calls: Sequence[Call]) -> list[Row]:
    """The rows of ended calls, grouped by session, newest first. Today's calls show the time without the date."""
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
    """(session name, tool name, call) for each call, grouped by session. Child calls follow their parent, with the tool
    name indented; otherwise the order is unchanged.

    Clients choose their session labels: if two sessions have the same label, a part of the session id is added.
    """
    sessions: dict[str, list[Call]] = {}
    labels: dict[str, set[str]] = {}
    for call in calls:
        sessions.setdefault(call["session_id"], []).append(call)
        labels.setdefault(call["session"], set()).add(call["session_id"])
    rows = []
    for session_id, group in sessions.items():
        label = group[0]["session"]
        name = f"{label} ({session_id[:6]})" if len(labels[label]) > 1 else label
        rows += [(cell(name or None), _indented(call, depth), call) for depth, call in call_tree(group)]
    return rows


def call_tree(calls: Sequence[Call]) -> Iterator[tuple[int, Call]]:
    """(depth, call) for each call, children after their parent. A child's id is ``<parent id>/<name>``."""
    shown = {call["id"] for call in calls}
    children: dict[str, list[Call]] = {}
    for call in calls:
        parent = call["id"].rpartition("/")[0]
        children.setdefault(parent if parent in shown else "", []).append(call)

    def subtree(parent: str, depth: int) -> Iterator[tuple[int, Call]]:
        for call in children.get(parent, ()):
            yield depth, call
            yield from subtree(call["id"], depth + 1)

    return subtree("", 0)


def _indented(call: Call, depth: int) -> str:
    return f"{'  ' * (depth - 1)}└ {cell(call['tool'])}" if depth else cell(call["tool"])


def _progress(progress: Mapping[str, Any] | None) -> str:
    if progress is None:
        return "-"
    message, done, total = (progress.get(part) for part in ("message", "done", "total"))
    if done is None:
        return cell(message)
    return f"{cell(message)} ({cell(done)}{'' if total is None else f' of {cell(total)}'})"
