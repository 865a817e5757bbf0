"""``toold calls``: running and ended calls, as tables by session."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.cli.calls_command import by_session, ended_rows, running_rows

if TYPE_CHECKING:
    from tests.cli.conftest import Operated, Run


def running(**fields: Any) -> dict[str, Any]:
    return {
        "id": "0a1b-1",
        "session": "an-editor",
        "session_id": "5e55104",
        "principal": "local",
        "client": "editor",
        "tool": "chat",
        "state": "running",
        "started_at": 1.0,
        "age_s": 65.2,
        "remaining_s": 264.8,
        "progress": None,
        **fields,
    }


def ended(**fields: Any) -> dict[str, Any]:
    return {
        "id": "0a1b-2",
        "session": "an-editor",
        "session_id": "5e55104",
        "principal": "local",
        "tool": "echo",
        "outcome": "ok",
        "latency_ms": 3.7,
        "started_at": time.time(),
        **fields,
    }


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_running_and_ended_calls_are_two_tables(run: Run, operated: Operated) -> None:
    """One line per call: principal, tool, state, duration, remaining time, id and progress."""
    progress = {"message": "asking\nkimi", "done": 1, "total": 4}
    calls = {"running": [running(progress=progress)], "recent": [ended(started_at=0.0)]}
    operated.answers["GET /operator/calls"] = (200, calls)
    result = run("calls", "--recent", "5")
    assert result.exit_code == 0
    assert operated.requests[0].path == "/operator/calls?recent=5"
    printed = lines(result.stdout)
    assert printed[:3] == [
        "Running",
        "SESSION PRINCIPAL TOOL STATE AGE LEFT ID PROGRESS",
        "an-editor local chat running 1 min 4 min 0a1b-1 asking kimi (1 of 4)",
    ]
    assert printed[3:6] == ["", "Ended", "SESSION PRINCIPAL TOOL OUTCOME LATENCY WHEN ID"]
    assert printed[6].startswith("an-editor local echo ok 4 ms 19")
    assert printed[6].endswith(" 0a1b-2")


def test_calls_of_several_nodes_name_them(run: Run, operated: Operated) -> None:
    """And the nodes that have not answered."""
    rows = [running(node="b"), running(id="c-1", node="a", session_id="other")]
    operated.answers["GET /operator/calls"] = (200, {"running": rows, "recent": [], "unanswered": ["c"]})
    printed = lines(run("calls").stdout)
    assert printed[1].startswith("NODE SESSION")
    assert [line.split()[0] for line in printed[2:4]] == ["b", "a"]
    assert printed[-1] == "The node c has not answered; its calls are not shown."


def test_no_running_call_is_reported(run: Run, operated: Operated) -> None:
    """A sentence says so, instead of an empty table."""
    operated.answers["GET /operator/calls"] = (200, {"running": [], "recent": []})
    assert run("calls").stdout == "No call is running.\n"


def test_json_is_the_daemons_answer(run: Run, operated: Operated) -> None:
    """One object and nothing else."""
    calls = {"running": [running()], "recent": []}
    operated.answers["GET /operator/calls"] = (200, calls)
    assert json.loads(run("calls", "--json").stdout) == calls


def test_without_a_daemon_the_exit_code_is_3(run: Run) -> None:
    """The message says what starts a daemon."""
    result = run("calls")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "toold serve" in result.stderr


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy"))))
def test_calls_are_grouped_by_session(labelled: list[tuple[str, str]]) -> None:
    """Every call is shown once, in the order of arrival within its session; sessions have different names."""
    calls = [running(id=str(n), session_id=s + "123456789", session=label) for n, (s, label) in enumerate(labelled)]
    # A session has one label at a time.
    for call in calls:
        call["session"] = next(one["session"] for one in calls if one["session_id"] == call["session_id"])
    named = by_session(calls)
    assert sorted(int(call["id"]) for *_, call in named) == list(range(len(calls)))
    order = [call["session_id"] for *_, call in named]
    assert order == sorted(order, key=order.index)
    for session_id in set(order):
        ids = [int(call["id"]) for *_, call in named if call["session_id"] == session_id]
        assert ids == sorted(ids)
    assert len({name for name, *_ in named}) == len(set(order))


def test_child_calls_follow_their_parent() -> None:
    """They are indented below it, even if other calls came between; a child without its parent is not indented."""
    ids = ["0a-1", "0a-2", "0a-1/fetch", "0a-1/all", "0a-1/all/0", "0a-9/late"]
    shown = by_session([running(id=call_id, tool=f"t{number}") for number, call_id in enumerate(ids)])
    assert [(tool, call["id"]) for _, tool, call in shown] == [
        ("t0", "0a-1"),
        ("└ t2", "0a-1/fetch"),
        ("└ t3", "0a-1/all"),
        ("  └ t4", "0a-1/all/0"),
        ("t1", "0a-2"),
        ("t5", "0a-9/late"),
    ]


@pytest.mark.parametrize(
    ("progress", "shown"),
    [
        (None, "-"),
        ({"message": "half", "done": None, "total": None}, "half"),
        ({"message": "half", "done": 1.5, "total": None}, "half (1.5)"),
        ({"message": "half", "done": 1, "total": 2}, "half (1 of 2)"),
    ],
)
def test_progress_is_one_cell(progress: dict[str, Any] | None, shown: str) -> None:
    """The tool's message, and the fraction that is done if the tool reported it."""
    assert running_rows([running(progress=progress)])[0][-1] == shown


def test_todays_calls_show_only_the_time() -> None:
    """A call of today is shown with its time, without the date."""
    assert len(ended_rows([ended()])[0][5]) == len("12:34:56")
