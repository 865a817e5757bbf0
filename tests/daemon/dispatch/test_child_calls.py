"""Child calls: they pass all stages of a call, within limits, and never deadlock."""

import asyncio
from typing import Any

import pytest
from toold.protocol.tool_call import Annotations, ToolResult
from toold.tools import Arguments, Tool

from .child_call_tools import answer, calling, say
from .scripted_tools import hang, raising


async def test_a_child_is_recorded_under_its_parents_id(
    make_harness: Any, make_tool: Any, make_orchestration: Any
) -> None:
    """A child has an id below its parent's, and its own record, which precedes its parent's."""
    harness = make_harness([make_orchestration(calling("say", text="hello")), make_tool("say", say)])
    result = await harness.call(harness.session(), 1, "compose")
    assert result.structured == {"said": "hello"}
    (child, child_result, size), (parent, _, _) = harness.recorder.ended_calls
    assert (child.id, child.tool.name, child.request.request_id) == (f"{parent.id}/step", "say", "step")
    assert (child_result.structured, size) == ({"said": "hello"}, len('{"said":"hello"}'))


async def test_a_childs_error_is_a_result(make_harness: Any, make_tool: Any, make_orchestration: Any) -> None:
    """An unknown tool, invalid arguments and a failing tool are results, each with its error and record."""

    class Typed(Arguments):
        """One argument."""

        text: str

    codes = []

    async def three(_arguments: Any, context: Any) -> str:
        for name, tool in (("a", "sya"), ("b", "typed"), ("c", "broken")):
            codes.append((await context.call(tool, {}, name=name)).error.code)
        return "done"

    typed = Tool("typed", "A tool.", Typed, say, Annotations(True, False, False, False))
    harness = make_harness([make_orchestration(three), typed, make_tool("broken", raising(ValueError("oh")))])
    assert (await harness.call(harness.session(), 1, "compose")).ok
    assert codes == ["TOOL_NOT_FOUND", "VALIDATION_ERROR", "TOOL_EXECUTION_ERROR"]
    assert [call.request_id for call, _ in harness.recorder.refused_calls] == ["a", "b"]


async def test_the_toolset_limits_child_calls_too(make_harness: Any, make_tool: Any, make_orchestration: Any) -> None:
    """A tool outside the session's toolset is not found by child calls either."""
    harness = make_harness([make_orchestration(calling("say"), "chat"), make_tool("say", say)])
    error = (await harness.call(harness.session(toolset="lean"), 1, "chat")).structured["error"]
    assert (error["code"], error["details"]["toolsets"]) == ("TOOL_NOT_FOUND", ["standard", "full", "code", "hybrid"])
    session = harness.session(toolset="lean")
    session.usable = ("lean", "full")
    assert (await harness.call(session, 2, "chat")).structured["error"]["details"]["toolsets"] == ["full"]


async def test_a_writing_child_is_journalled_before_it_runs(
    make_harness: Any, make_tool: Any, make_orchestration: Any
) -> None:
    """Under its parent's run; a local child is not journalled."""
    both = ("write", "say")

    async def two(_arguments: Any, context: Any) -> None:
        for tool in both:
            await context.call(tool, {}, name=tool)

    harness = make_harness([make_orchestration(two), make_tool("write", say, read_only=False), make_tool("say", say)])
    await harness.call(harness.session(), 1, "compose")
    assert harness.journal.events == [("start", "n1"), ("start", "write"), ("end", "write"), ("end", "n1")]
    (parent,) = (running for running, _, _ in harness.recorder.ended_calls if running.parent is None)
    assert (parent.id, "write") in harness.journal.calls


async def test_a_large_result_reaches_its_parent_whole(
    make_harness: Any, make_tool: Any, make_orchestration: Any
) -> None:
    """A child's answer may exceed a frame; only the parent's answer has to fit."""

    async def flood(arguments: Any, context: Any) -> str:
        return "x" * 200_000

    async def measure(_arguments: Any, context: Any) -> int:
        return len((await context.call("flood", {}, name="step")).outputs[0].text)

    harness = make_harness([make_orchestration(measure), make_tool("flood", flood)])
    assert (await harness.call(harness.session(), 1, "compose")).structured == 200_000


async def test_usage_of_children_is_added_to_their_parents(
    make_harness: Any, make_tool: Any, make_orchestration: Any
) -> None:
    """The answer has the total usage, cost and requests; each record has its own call's only."""

    async def two(_arguments: Any, context: Any) -> None:
        await asyncio.gather(*(context.call("ask", {}, name=name) for name in "ab"))

    nested = make_orchestration(calling("inner"), "outer")
    harness = make_harness([make_orchestration(two, "inner"), nested], {"kimi": (answer, 2)})
    metadata = (await harness.call(harness.session(), 1, "outer")).metadata
    assert metadata.provider_calls == 2
    assert (metadata.usage.input_tokens, metadata.usage.output_tokens, metadata.provider) == (6, 10, "kimi")
    own = {running.id.count("/"): running.meter.provider_calls for running, _, _ in harness.recorder.ended_calls}
    assert own == {2: 1, 1: 0, 0: 0}


async def test_progress_names_the_child(make_harness: Any, make_tool: Any, make_orchestration: Any) -> None:
    """A child's progress reaches the client, prefixed by the names of the children on the way."""

    async def report(arguments: Any, context: Any) -> None:
        context.progress("half", 1, 2)
        context.stream("a piece")
        assert not context.streaming

    outer = make_orchestration(calling("inner", name="b"), "outer")
    inner = make_orchestration(calling("report", name="a"), "inner")
    harness = make_harness([outer, inner, make_tool("report", report)])
    await harness.call(harness.session(streaming=True), 1, "outer")
    ((request_id, progress),) = harness.port.heard
    assert (request_id, progress.message, progress.done, progress.total) == (1, "b: a: half", 1, 2)
    assert harness.port.chunks == []


@pytest.mark.parametrize("name", ["", "a/b", "x" * 81, "a b"])
async def test_a_child_has_a_unique_name(make_harness: Any, make_tool: Any, make_orchestration: Any, name: str) -> None:
    """Ids contain names, so invalid and repeated ones are refused."""

    async def misnamed(_arguments: Any, context: Any) -> str:
        with pytest.raises(ValueError, match="cannot be a child's name"):
            await context.call("say", {}, name=name)
        await context.call("say", {}, name="once")
        with pytest.raises(ValueError, match="used before"):
            await context.call("say", {}, name="once")
        return "refused"

    harness = make_harness([make_orchestration(misnamed), make_tool("say", say)])
    assert (await harness.call(harness.session(), 1, "compose")).ok


async def test_nested_calls_never_deadlock(make_harness: Any, make_tool: Any, make_orchestration: Any) -> None:
    """Eight orchestration calls, nested four deep, end in a session with one permit, on a daemon with two: a call that
    waits for its children holds nothing that they need.
    """

    async def nest(arguments: Any, context: Any) -> Any:
        deeper = arguments.get("deeper")
        if not deeper:
            return (await context.call("say", {"text": "bottom"}, name="leaf")).structured
        both = (context.call("compose", {"deeper": deeper - 1}, name=f"n{number}") for number in range(2))
        return [result.structured for result in await asyncio.gather(*both)]

    harness = make_harness([make_orchestration(nest), make_tool("say", say)], max_running=2)
    session = harness.session(running=1)
    for request_id in range(8):
        harness.submit(session, request_id, "compose", {"deeper": 3})
    await harness.answered()
    leaf = {"said": "bottom"}
    assert [result.structured for result in harness.port.answers.values()] == [[[[leaf] * 2] * 2] * 2] * 8
    assert set(harness.counts().values()) == {0}


async def test_orchestration_calls_per_session_are_limited(
    make_harness: Any, make_tool: Any, make_orchestration: Any
) -> None:
    """One more is refused at once and is retryable; other calls, and other sessions, are not affected."""
    harness = make_harness(
        [make_orchestration(calling("hang")), make_tool("hang", hang), make_tool("say", say)],
        max_orchestrations_per_session=2,
    )
    session = harness.session(running=4)
    harness.submit(session, 1, "compose")
    harness.submit(session, 2, "compose")
    error = harness.submit(session, 3, "compose").error
    assert (error.code, error.retryable, error.retry_after_ms) == ("OVER_CAPACITY", True, 500)
    assert (await harness.call(session, 4, "say")).ok
    harness.submit(harness.session(), 5, "compose")
    harness.router.cancel(session, "n1")
    await harness.until(lambda: 1 in harness.port.answers)
    assert not isinstance(harness.submit(session, 6, "compose"), ToolResult)
    await harness.router.close("The test is over.", 0)


async def test_nesting_is_limited(make_harness: Any, make_tool: Any, make_orchestration: Any) -> None:
    """An orchestration call beyond the depth is refused; a plain call at that depth is not."""

    async def dig(_arguments: Any, context: Any) -> Any:
        plain = await context.call("say", {}, name="say")
        deeper = await context.call("compose", {}, name="dig")
        assert plain.ok
        return deeper.structured if deeper.ok else {"why": deeper.error.message}

    harness = make_harness([make_orchestration(dig), make_tool("say", say)], max_depth=4)
    result = await harness.call(harness.session(), 1, "compose")
    assert "nested 4 deep" in result.structured["why"]
    assert [running.id.count("/") for running, _, _ in harness.recorder.ended_calls] == [1, 2, 3, 4, 3, 2, 1, 0]


async def test_children_per_call_are_limited(make_harness: Any, make_tool: Any, make_orchestration: Any) -> None:
    """Calls beyond the limit are refused, and not retryable."""

    async def many(_arguments: Any, context: Any) -> Any:
        results = [await context.call("say", {}, name=str(number)) for number in range(4)]
        return [result.error and result.error.retryable for result in results]

    harness = make_harness([make_orchestration(many), make_tool("say", say)], max_children=3)
    assert (await harness.call(harness.session(), 1, "compose")).structured == [None, None, None, False]


async def test_children_count_neither_as_accepted_nor_as_waiting(
    make_harness: Any, make_tool: Any, make_orchestration: Any
) -> None:
    """Children use neither the session's nor the daemon's limit of accepted and waiting calls."""

    async def many(_arguments: Any, context: Any) -> None:
        await asyncio.gather(*(context.call("hang", {}, name=str(number)) for number in range(10)))

    harness = make_harness(
        [make_orchestration(many), make_tool("hang", hang), make_tool("say", say)],
        max_accepted_per_session=3,
        max_waiting=1,
    )
    session = harness.session(running=2)
    harness.submit(session, 1, "compose")
    await harness.until(lambda: session.permits.in_use == 2 and session.permits.waiting == 8)
    assert (harness.router.accepted, harness.router.waiting) == (1, 0)
    assert not isinstance(harness.submit(session, 2, "say"), ToolResult)
    assert harness.router.waiting == 1
    assert harness.submit(session, 3, "say").error.code == "OVER_CAPACITY"
    await harness.router.close("The test is over.", 0)
