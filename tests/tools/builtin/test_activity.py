"""``activity`` lists the caller's own calls by session."""

import time
from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.protocol.tool_call import Principal
from toold.tools import bind
from toold.tools.builtin.activity import activity

if TYPE_CHECKING:
    from tests.tools.tool_context import Context


def runs(call_id: str, session: str, principal: str = "local") -> dict[str, Any]:
    """A running call, as the daemon reports it."""
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


async def test_calls_are_grouped_by_session(context: "Context") -> None:
    """Running calls have their age and remaining time, ended calls their outcome. The current call is omitted."""
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


async def test_only_calls_of_the_principal_are_shown(context: "Context") -> None:
    """Running and ended calls are restricted to the caller's principal."""
    context.principal = Principal("ann")
    context.daemon.runs = [runs("c-1", "a"), runs("c-2", "b", principal="ann")]
    (session,) = await run(context, recent=3)
    assert [call["id"] for call in session["calls"]] == ["c-2"]
    assert (context.daemon.wanted["principal"], context.daemon.wanted["limit"]) == ("ann", 3)


async def test_recent_zero_reads_no_log(context: "Context") -> None:
    """With ``recent`` 0 the answer comes only from memory."""
    assert await run(context, recent=0) == []
    assert context.daemon.wanted == {}


@pytest.mark.parametrize("recent", [-1, 101, "five"])
def test_invalid_recent_is_refused(recent: Any) -> None:
    """``recent`` is an integer from 0 to 100."""
    with pytest.raises(InvalidArgumentsError, match="recent should be"):
        bind(activity, {"recent": recent})


def test_activity_needs_no_permit() -> None:
    """The tool answers even if all permits are in use."""
    assert activity.unmetered
