"""``call_status``, ``call_result``, ``cancel_call``: their answers and errors by state."""

from typing import Any

import pytest
from msgspec.structs import replace
from toold.protocol.error_codes import CallTimeoutError, NotFoundError, OutcomeUnknownError, ResultExpiredError
from toold.protocol.tool_call import Metadata, Progress, TextContent, Timings, ToolResult
from toold.tools import CallInfo, bind
from toold.tools.builtin.own_calls import call_result, call_status, cancel_call

METADATA = Metadata(1.0, Timings())


async def ask(tool: Any, context: Any, call_id: str = "e-1") -> Any:
    return await tool.function(bind(tool, {"call_id": call_id}), context)


async def test_a_running_call_is_reported_with_its_progress(context: Any) -> None:
    """Both tools report the call, and unknown fields are omitted."""
    running = CallInfo(
        id="e-1", state="running", tool="execute_batch", remaining_s=9.87654, progress=Progress("x", 1, 2)
    )
    context.known["e-1"] = running
    expected = {
        "call_id": "e-1",
        "state": "running",
        "tool": "execute_batch",
        "remaining_s": 9.877,
        "progress": {"message": "x", "done": 1, "total": 2},
    }
    assert await ask(call_status, context) == expected
    assert await ask(call_result, context) == expected


async def test_call_result_returns_data_text_or_error(context: Any) -> None:
    """The result is the tool's data, its text if it has no data, or its error. A retained result is
    marked as spilled.
    """
    for result, reported in (
        (ToolResult(METADATA, (TextContent("3"),), [1, 2, 3]), {"result": [1, 2, 3]}),
        (ToolResult(METADATA, (TextContent("words"),)), {"result": "words"}),
        (
            ToolResult(replace(METADATA, spilled=True), (), {"handle": "h"}),
            {"result": {"handle": "h"}, "spilled": True},
        ),
    ):
        context.known["e-1"] = CallInfo(id="e-1", state="done", outcome="ok", result=result)
        assert await ask(call_result, context) == {"call_id": "e-1", "state": "done", "outcome": "ok", **reported}
    failed = ToolResult(METADATA, error=CallTimeoutError("Too late.").to_tool_error())
    context.known["e-1"] = CallInfo(id="e-1", state="failed", outcome="TIMEOUT", result=failed)
    assert (await ask(call_result, context))["error"]["message"] == "Too late."
    assert await ask(call_status, context) == {"call_id": "e-1", "state": "failed", "outcome": "TIMEOUT"}


@pytest.mark.parametrize(
    ("known", "error", "words"),
    [
        (CallInfo(id="e-1", state="unknown"), NotFoundError, "activity"),
        (CallInfo(id="e-1", state="expired"), ResultExpiredError, "deleted because of its age"),
        (CallInfo(id="e-1", state="interrupted"), OutcomeUnknownError, "check whether"),
        (CallInfo(id="e-1", state="done", outcome="ok"), NotFoundError, "sent to its caller .* local read-only"),
    ],
    ids=lambda value: value.state if isinstance(value, CallInfo) else None,
)
async def test_calls_without_a_result_get_an_explanation(context: Any, known: CallInfo, error: Any, words: str) -> None:
    """``call_status`` reports each state, and ``call_result`` raises an error that names the cause."""
    context.known["e-1"] = known
    assert (await ask(call_status, context))["state"] == known.state
    with pytest.raises(error, match=words):
        await ask(call_result, context)


async def test_only_running_calls_are_cancelled(context: Any) -> None:
    """An ended call is reported unchanged, and an unknown call is an error."""
    context.known["e-1"] = CallInfo(id="e-1", state="running")
    assert await ask(cancel_call, context) == {"call_id": "e-1", "cancelled": True}
    assert context.cancelled == ["e-1"]
    context.known["e-1"] = CallInfo(id="e-1", state="done", outcome="ok")
    assert await ask(cancel_call, context) == {"call_id": "e-1", "state": "done", "outcome": "ok", "cancelled": False}
    with pytest.raises(NotFoundError):
        await ask(cancel_call, context, "e-2")


def test_reading_tools_are_local_and_need_no_permit() -> None:
    """``call_status`` and ``call_result`` need no permit. ``cancel_call`` is a repeatable write."""
    assert all(tool.local and tool.unmetered for tool in (call_status, call_result))
    assert not cancel_call.local
    assert cancel_call.repeatable
