"""``toold status``: what the daemon says of itself, set out in tables."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.cli.status_command import cell, duration, headline, sections

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Run, StubDaemon

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(), part, max_size=3),
    max_leaves=8,
)
KEYS = ("version", "pid", "uptime_s", "connections", "simulated", "limits", "providers", "totals", "audit", "recent")
MORE_KEYS = ("usage", "budget", "provider_budgets", "paused")
USED = {"completions": 2, "input_tokens": 30, "output_tokens": 4, "cost": {"USD": 0.25}, "estimated": True}
SUMS = {"calls": 3, "errors": 1, "input_tokens": 10, "output_tokens": 20, "cost": {"USD": 0.5, "CNY": 2.0}}
STATUS: dict[str, Any] = {
    "version": "0.1.0",
    "uptime_s": 65,
    "pid": 42,
    "simulated": True,
    "connections": 1,
    "limits": {
        "running": {"limit": 24, "in_use": 1, "waiting": 0},
        "accepted": 1,
        "providers": {"kimi": {"limit": 6, "in_use": 2, "waiting": 3}},
    },
    "providers": [
        {"name": "kimi", "available": True, "simulated": True, "transport": "openai 3"},
        {"name": "glm", "available": False, "simulated": False, "transport": None, "missing": "set GLM_API_KEY"},
    ],
    "totals": {
        "all": SUMS,
        "by_tool": {"chat": SUMS},
        "by_model": [{**SUMS, "model": "kimi-k2", "cost": {}}],
    },
    "audit": {
        "written": 7,
        "dropped": 0,
        "problem": None,
        "remote": {
            "state": "retrying",
            "last_error": "HTTP 503",
            "sent": 5,
            "backlog": 2,
            "refused": 1,
            "dropped": 0,
            "copies": {"state": "idle", "last_error": None, "sent": 8, "backlog": 0, "refused": 0, "dropped": 3},
        },
    },
    "usage": [
        {
            "day": "2026-05-02",
            **USED,
            "by_provider": {"kimi": USED},
            "by_model": {"k2": USED},
            "by_tool": {"chat": USED},
        },
        {"day": "2026-05-01", **USED, "estimated": False, "by_provider": {"kimi": USED}},
    ],
    "budget": {"budget": {"USD": 5.0}, "spent": {"USD": 0.25}, "reserved": {}, "resets_at": "midnight"},
    "provider_budgets": {"acme": {"budget": {"USD": 2.0}, "spent": {}, "reserved": {"USD": 0.1}, "resets_at": "soon"}},
    "paused": [
        {
            "id": "9f-1",
            "tool": "careful",
            "principal": "ann",
            "age_s": 90_000.0,
            "expires_at": "tomorrow",
            "requests": [{"id": f"t1.{n}", "kind": "approve", "tool": "echo"} for n in range(5)],
        },
        {"id": "9f-2", "tool": "asker", "requests": [{"id": "t1.0", "kind": "question", "tool": None}]},
    ],
    "recent": [{"started_at": "now", "tool": "chat", "outcome": "ok", "latency_ms": 12.4, "session": "label"}],
}


def answer_status(call: dict[str, Any], send: Callable[..., None]) -> None:
    outputs = [{"type": "text", "text": json.dumps(STATUS)}]
    send("call_tool_res", request_id=call["request_id"], outputs=outputs, error=None, structured=STATUS)


def test_the_tables_are_printed(run: Run, daemon: StubDaemon) -> None:
    """Headline first, then a table each for limits, providers, sums, usage by day, budget, audit, paused calls and the
    last calls, as many as asked for.
    """
    daemon.on_call = answer_status
    result = run("status", "--recent", "5")
    assert result.exit_code == 0
    assert daemon.wait_for("call_tool")["arguments"] == {"recent": 5}
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[0] == f"toold 0.1.0 at {daemon.url}, pid 42, up 1 min, 1 connection, simulated"
    for line in (
        "running 1 24 0",
        "providers/kimi 2 6 3",
        "kimi simulated openai 3",
        "glm not available: set GLM_API_KEY -",
        "all calls 3 1 10 20 0.5 USD + 2 CNY",
        "tool chat 3 1 10 20 0.5 USD + 2 CNY",
        "model kimi-k2 3 1 10 20 -",
        "2026-05-02 all 2 about 30 about 4 0.25 USD",
        "2026-05-02 provider kimi 2 about 30 about 4 0.25 USD",
        "2026-05-02 model k2 2 about 30 about 4 0.25 USD",
        "2026-05-02 tool chat 2 about 30 about 4 0.25 USD",
        "2026-05-01 all 2 30 4 0.25 USD",
        "all USD 5 0.25 0 midnight",
        "acme USD 2 0 0.1 soon",
        "local database ok 7 - - 0",
        "Supabase retrying: HTTP 503 5 2 1 0",
        "Supabase, message copies idle 8 0 0 3",
        "9f-1 careful ann 1 d 1 h tomorrow t1.0 approve echo, t1.1 approve echo, t1.2 approve echo, 2 more",
        "9f-2 asker - - - t1.0 question",
        "now chat ok 12 ms - - label",
    ):
        assert line in lines


def test_json_is_the_status_unchanged(run: Run, daemon: StubDaemon) -> None:
    """One object and nothing else."""
    daemon.on_call = answer_status
    assert json.loads(run("status", "--json").stdout) == STATUS


def test_todays_calls_show_only_the_time() -> None:
    """A call of today stands with its time, one of another day with its date too."""
    days_ago = time.time() - 3 * 86_400
    _, _, rows = sections({"recent": [{"started_at": time.time()}, {"started_at": days_ago}]})[-1]
    assert [len(row[0]) for row in rows] == [len("12:34:56"), len("2026-01-31 12:34:56")]


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS + MORE_KEYS, JSON)))
def test_any_status_can_be_printed(status: dict[str, Any]) -> None:
    """A daemon of another version says other things: whatever they are, each row fits its headers on one line."""
    assert "\n" not in headline("ws://x/", status)
    for _, headers, rows in sections(status):
        for row in rows:
            assert len(row) == len(headers)
            assert not any("\n" in text for text in row)


@pytest.mark.parametrize(
    ("seconds", "message"),
    [(0, "0 s"), (59.4, "59 s"), (60, "1 min"), (3600, "1 h 0 min"), (12_000, "3 h 20 min"), (1_047_600, "12 d 3 h")],
)
def test_durations_have_at_most_two_units(seconds: float, message: str) -> None:
    """A person reads how long in the units that matter."""
    assert duration(seconds) == message


@pytest.mark.parametrize(
    ("value", "message"), [(None, "-"), ("a\nb", "a b"), (1.50, "1.5"), (3, "3"), ([1, "a"], '[1,"a"]'), (True, "True")]
)
def test_any_value_is_one_line(value: object, message: str) -> None:
    """Cells hold no line ends."""
    assert cell(value) == message
