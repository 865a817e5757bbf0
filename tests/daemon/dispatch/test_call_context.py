"""One call as its tool sees it: its ids and time, reports, conversations, and vendors."""

import asyncio
from typing import Any

import pytest
from toold.protocol.tool_call import LOCAL, Progress
from toold.providers import CompletionRequest, OnDelta

from .priced_provider import once, question


async def test_a_context_has_the_call_but_no_connection(make_harness: Any, make_tool: Any) -> None:
    """Ids, principal, client, and the remaining time, which is never negative."""
    seen: dict[str, Any] = {}

    async def look(arguments: Any, context: Any) -> str:
        seen.update(id=context.call_id, principal=context.principal, streaming=context.streaming)
        seen["left"] = context.remaining()
        context._call.deadline = 0.0
        seen["late"] = context.remaining()
        return ""

    harness = make_harness([make_tool("look", look)])
    await harness.call(harness.session(streaming=True), 1, "look", timeout_ms=20_000)
    assert seen["id"]
    assert (seen["principal"], seen["streaming"], seen["late"]) == (LOCAL, True, 0.0)
    assert 0 < seen["left"] <= 20


async def test_reports_stop_with_the_answer(make_harness: Any, make_tool: Any) -> None:
    """Reports of a tool that outlives its call are dropped."""
    contexts: list[Any] = []

    async def report(arguments: Any, context: Any) -> str:
        context.progress("half", 1, 2)
        context.stream("text")
        contexts.append(context)
        return ""

    harness = make_harness([make_tool("report", report)])
    await harness.call(harness.session(streaming=True), 1, "report")
    contexts[0].progress("too late")
    contexts[0].stream("too late")
    assert harness.port.heard == [(1, Progress("half", 1.0, 2.0))]
    assert harness.port.chunks == [(1, "text")]


async def test_text_is_streamed_only_to_streaming_sessions(make_harness: Any, make_tool: Any) -> None:
    """Other sessions get no chunks, and no session gets an empty one."""

    async def stream(arguments: Any, context: Any) -> str:
        for piece in ("one", "", "two"):
            context.stream(piece)
        return ""

    harness = make_harness([make_tool("stream", stream)])
    await harness.call(harness.session("silent"), "silent", "stream")
    await harness.call(harness.session("reading", streaming=True), "reading", "stream")
    assert harness.port.chunks == [("reading", "one"), ("reading", "two")]


async def test_unsendable_values_are_replaced(make_harness: Any, make_tool: Any) -> None:
    """Lone surrogates are not Unicode, infinities are not JSON, and long messages are truncated."""

    async def odd(arguments: Any, context: Any) -> str:
        context.progress("odd \ud83d", float("inf"), float("nan"))
        context.progress("x" * 100_000)
        context.stream("odd \ude00")
        return ""

    harness = make_harness([make_tool("odd", odd)])
    await harness.call(harness.session(streaming=True), 1, "odd")
    (_, first), (_, long) = harness.port.heard
    assert first == Progress("odd ?", None, None)
    assert len(long.message) <= 1000
    assert harness.port.chunks == [(1, "odd ?")]


async def test_a_conversation_is_locked_for_the_calls_principal(make_harness: Any, make_tool: Any) -> None:
    """By its id or as a new one, for the call's session; a call that has to wait reports it."""

    async def talk(arguments: Any, context: Any) -> str:
        ids.append(context.call_id)
        async with context.conversation(arguments.get("id")) as conversation:
            return str(conversation.id)

    ids: list[str] = []
    harness = make_harness([make_tool("talk", talk)])
    session = harness.session()
    assert (await harness.call(session, 1, "talk")).outputs[0].text == "new"
    assert (await harness.call(session, 2, "talk", arguments={"id": "c-1"})).outputs[0].text == "c-1"
    assert harness.conversations.wanted == [
        (None, (LOCAL, session.id, ids[0])),
        ("c-1", (LOCAL, session.id, ids[1])),
    ]
    assert "waiting for another call of the same conversation" in harness.port.heard[0][1].message


async def test_an_unconfigured_vendor_names_the_missing_setting(make_harness: Any, make_tool: Any) -> None:
    """The tool gets the error before anything is asked, and may ask the other vendor instead."""

    async def either(arguments: Any, context: Any) -> str:
        with pytest.raises(Exception, match="GLM_API_KEY"):
            await context.complete(question(context, "glm"))
        return str((await context.complete(question(context, "kimi"))).text)

    harness = make_harness([make_tool("either", either)], providers={"kimi": (once, 6)})
    assert (await harness.call(harness.session(), 1, "either")).outputs[0].text == "hi"


async def test_requests_in_a_tools_tasks_end_with_the_call(make_harness: Any, make_tool: Any) -> None:
    """A forgotten task holds no provider permit."""
    reached, tasks = asyncio.Event(), []

    async def hang(request: CompletionRequest, on_delta: OnDelta | None) -> str:
        reached.set()
        await asyncio.Event().wait()
        return ""

    async def forgetful(arguments: Any, context: Any) -> str:
        tasks.append(asyncio.create_task(context.complete(question(context, "kimi"))))
        await reached.wait()
        return "done"

    harness = make_harness([make_tool("forgetful", forgetful)], providers={"kimi": (hang, 6)})
    assert (await harness.call(harness.session(), 1, "forgetful")).outputs[0].text == "done"
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]
    async with asyncio.timeout(20):
        while harness.limiters["kimi"].permits.in_use:
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("method", ["capabilities", "vendor"])
async def test_abilities_of_an_unconfigured_vendor_name_the_missing_setting(
    make_harness: Any, make_tool: Any, method: str
) -> None:
    """The same error as for completions."""

    async def lost(arguments: Any, context: Any) -> Any:
        return context.capabilities("glm") if method == "capabilities" else await context.vendor("glm", once)

    harness = make_harness([make_tool("lost", lost)], providers={"kimi": (once, 6)})
    error = (await harness.call(harness.session(), 1, "lost")).error
    assert (error.code, error.retryable) == ("SERVICE_UNAVAILABLE", False)
    assert "GLM_API_KEY" in error.message
