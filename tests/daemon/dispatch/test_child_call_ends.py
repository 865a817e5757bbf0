"""How child calls end: by their timeouts, with their parents, and alone."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from toold.daemon.dispatch import call_execution
from toold.protocol.error_codes import ToolExecutionError
from toold.protocol.tool_call import TextContent

from .child_call_tools import calling, say
from .scripted_tools import hang


@pytest.mark.parametrize(
    ("named_s", "tool_s", "parent_ms", "most_s"),
    [(5.0, None, 60_000, 5.0), (None, 7.0, 60_000, 7.0), (None, None, 60_000, 30.0), (50.0, 7.0, 3_000, 3.0)],
    ids=["named", "the tool's", "the daemon's", "what is left"],
)
async def test_a_childs_timeout_is_limited_by_its_parents(
    make_harness: Any,
    make_tool: Any,
    make_orchestration: Any,
    named_s: float | None,
    tool_s: float | None,
    parent_ms: float,
    most_s: float,
) -> None:
    """The requested timeout or its tool's, but at most the time that its parent has left."""
    left = []

    async def look(arguments: Any, context: Any) -> None:
        left.append((context.remaining(), context.has_explicit_timeout))

    harness = make_harness(
        [make_orchestration(calling("look", timeout_s=named_s)), make_tool("look", look, timeout_s=tool_s)]
    )
    await harness.call(harness.session(), 1, "compose", timeout_ms=parent_ms)
    ((remaining, named),) = left
    assert most_s - 2 < remaining <= most_s
    assert named == (named_s is not None)


async def test_a_childs_timeout_is_the_childs_error(make_harness: Any, make_tool: Any, make_orchestration: Any) -> None:
    """A child that times out is TIMEOUT for its parent, which continues."""
    harness = make_harness([make_orchestration(calling("hang", timeout_s=0.02)), make_tool("hang", hang)])
    result = await harness.call(harness.session(), 1, "compose")
    assert result.structured["error"]["code"] == "TIMEOUT"
    assert set(harness.counts().values()) == {0}


@pytest.mark.parametrize(
    ("how", "code"), [("caller", "CANCELLED"), ("deadline", "TIMEOUT"), ("disconnect", "CANCELLED"), ("fails", None)]
)
async def test_children_end_with_their_parent(
    make_harness: Any, make_tool: Any, make_orchestration: Any, how: str, code: str | None
) -> None:
    """If the parent ends for any reason, its children are cancelled, and recorded before it."""

    async def several(_arguments: Any, context: Any) -> None:
        strays = [asyncio.create_task(context.call("hang", {}, name=f"stray{number}")) for number in range(3)]
        await asyncio.sleep(0)
        if how == "fails":
            await harness.until(lambda: session.permits.in_use == 3)
            raise ToolExecutionError("It failed.")
        await context.call("hang", {}, name="awaited")
        await asyncio.gather(*strays)

    harness = make_harness([make_orchestration(several), make_tool("hang", hang)])
    session = harness.session()
    timeout_ms = 150 if how == "deadline" else None
    harness.submit(session, 1, "compose", timeout_ms=timeout_ms, on_disconnect="cancel")
    if how in {"caller", "disconnect"}:
        await harness.until(lambda: session.permits.in_use == 4)
        if how == "caller":
            harness.router.cancel(session, "n1")
        else:
            harness.router.disconnect(session, harness.port)
    await harness.answered()
    *children, (parent, result, _) = harness.recorder.ended_calls
    assert parent.parent is None
    assert {child_result.error.code for _, child_result, _ in children} == {code or "CANCELLED"}
    assert len(children) == (3 if how == "fails" else 4)
    assert result.error.code == (code or "TOOL_EXECUTION_ERROR")
    assert set(harness.counts().values()) == {0}


async def test_a_child_that_does_not_return_is_answered_for(
    make_harness: Any, make_tool: Any, make_orchestration: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool that swallows its cancellation delays its parent by the same time again."""
    monkeypatch.setattr(call_execution, "STUCK_S", 0.1)
    release = asyncio.Event()

    async def stuck(arguments: Any, context: Any) -> str:
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()
        return "at last"

    tools = [make_orchestration(calling("stuck")), make_tool("stuck", stuck)]
    harness = make_harness(tools, progress_interval_s=0.2)
    session = harness.session()
    heartbeats = asyncio.create_task(harness.router.heartbeats.run())
    harness.submit(session, 1, "compose")
    await harness.until(lambda: session.permits.in_use)
    harness.router.cancel(session, "n1")
    await harness.answered()
    assert [result.error.code for _, result, _ in harness.recorder.ended_calls] == ["CANCELLED", "CANCELLED"]
    release.set()
    await harness.until(lambda: not session.permits.in_use)
    heartbeats.cancel()


async def test_a_cancelled_wait_ends_the_child(make_harness: Any, make_tool: Any, make_orchestration: Any) -> None:
    """The tool continues once the child has ended, so nothing of it runs concurrently."""

    async def impatient(_arguments: Any, context: Any) -> str:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await context.call("hang", {}, name="first")
        assert session.permits.in_use == 0
        return str((await context.call("say", {"text": "on"}, name="second")).structured["said"])

    harness = make_harness([make_orchestration(impatient), make_tool("hang", hang), make_tool("say", say)])
    session = harness.session()
    result = await harness.call(session, 1, "compose")
    assert result.outputs == (TextContent("on"),)
    assert [ended_call.outcome for _, ended_call, _ in harness.recorder.ended_calls] == ["CANCELLED", "ok", "ok"]


async def test_the_operator_can_end_one_child(make_harness: Any, make_tool: Any, make_orchestration: Any) -> None:
    """A child can be cancelled by its id; its parent gets its error."""
    harness = make_harness([make_orchestration(calling("hang")), make_tool("hang", hang)])
    session = harness.session()
    harness.submit(session, 1, "compose")
    await harness.until(lambda: session.permits.in_use)
    parent, child = harness.router.calls
    assert await harness.router.cancel_by_operator(child.id)
    await harness.answered()
    assert harness.port.answers[1].structured["error"]["message"] == "The call was cancelled by the operator."
    assert child.id == f"{parent.id}/step"


async def test_a_drain_lets_a_call_make_children(make_harness: Any, make_tool: Any, make_orchestration: Any) -> None:
    """Running calls may finish within the grace period, and so may their children."""
    going_down = asyncio.Event()

    async def late(_arguments: Any, context: Any) -> Any:
        await going_down.wait()
        return (await context.call("say", {"text": "late"}, name="step")).structured

    harness = make_harness([make_orchestration(late), make_tool("say", say)])
    harness.submit(harness.session(), 1, "compose")
    closing = asyncio.create_task(harness.router.close("The daemon is going down.", 5))
    await asyncio.sleep(0)
    going_down.set()
    await closing
    assert harness.port.answers[1].structured == {"said": "late"}
