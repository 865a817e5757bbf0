"""``activity``: the caller's own calls, session by session."""

import time
from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.protocol.tool_call import Principal
from toold.tools import bind
from toold.tools.builtin.activity import activity

if TYPE_CHECKING:
    from tests.tools.conftest import Context


def runs(call_id: str, session: str, principal: str = "local") -> dict[str, Any]:
    """A running call as the daemon has it."""
    plain = {"client": "ide", "tool": "chat", "state": "running", "age_s": 2.0, "remaining_s": 8.0, "progress": None}
    return {"id": call_id, "session": session, "session_id": f"{session}-id", "principal": principal, **plain}


def ended(call_id: str, session: str) -> dict[str, Any]:
    """The audit row of a call."""
    times = {"started_at": time.time() - 60, "latency_ms": 12.5}
    return {
        "id": call_id,
        "session_label": session,
        "session_id": f"{session}-id",
        "tool": "echo",
        "outcome": "ok",
    } | times


async def run(context: "Context", **arguments: Any) -> list[dict[str, Any]]:
    sessions: list[dict[str, Any]] = (await activity.function(bind(activity, arguments), context))["sessions"]
    return sessions


async def test_calls_stand_under_their_sessions(context: "Context") -> None:
    """Those that run with age and time left, those that ended with their outcome; not this very call."""
    context.daemon.runs = [runs("c-1", "a"), runs("c-2", "b"), runs(context.call_id, "a")]
    context.daemon.log = [ended("c-0", "a")]
    first, second = await run(context)
    assert (first["session"], first["session_id"], [call["id"] for call in first["calls"]]) == (
        "a",
        "a-id",
        ["c-1", "c-0"],
    )
    assert [call["id"] for call in second["calls"]] == ["c-2"]
    running, over = first["calls"]
    assert running == {
        "id": "c-1",
        "tool": "chat",
        "state": "running",
        "age_s": 2.0,
        "remaining_s": 8.0,
        "progress": None,
    }
    assert (over["state"], over["outcome"], over["latency_ms"]) == ("ended", "ok", 12.5)
    assert over["age_s"] >= 60


async def test_nobody_elses_calls_are_shown(context: "Context") -> None:
    """Neither running ones nor ended ones: the daemon is asked for the caller's principal alone."""
    context.principal = Principal("ann")
    context.daemon.runs = [runs("c-1", "a"), runs("c-2", "b", principal="ann")]
    (session,) = await run(context, recent=3)
    assert [call["id"] for call in session["calls"]] == ["c-2"]
    assert (context.daemon.wanted["principal"], context.daemon.wanted["limit"]) == ("ann", 3)


async def test_without_the_past_no_log_is_read(context: "Context") -> None:
    """``recent`` 0 answers from memory alone."""
    assert await run(context, recent=0) == []
    assert context.daemon.wanted == {}


@pytest.mark.parametrize("recent", [-1, 101, "5"])
def test_a_wrong_number_is_refused(recent: Any) -> None:
    """``recent`` is a whole number from 0 to 100."""
    with pytest.raises(InvalidArgumentsError, match="recent should be"):
        bind(activity, {"recent": recent})


def test_it_answers_when_everything_is_busy() -> None:
    """It takes no permit."""
    assert activity.unmetered
