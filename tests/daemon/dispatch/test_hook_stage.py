"""Hooks on the call path: when they are asked, and what their answers do to a call."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.call_hooks.scripted_hook import ScriptedHook, scripted_hook
from toold.call_hooks import CallHooks, read_hooks
from toold.protocol.arguments_digest import arguments_digest
from toold.protocol.error_codes import NotFoundError
from toold.protocol.tool_call import ToolResult
from toold.tools import ToolOutput

from .child_call_tools import calling
from .scripted_tools import make_tool, say


@pytest.fixture
async def hook() -> AsyncIterator[ScriptedHook]:
    async with scripted_hook() as hook:
        yield hook


@pytest.fixture
async def hooks(hook: ScriptedHook) -> AsyncIterator[CallHooks]:
    """One hook for all calls."""
    hooks = CallHooks()
    hooks.apply(read_hooks({"guard": hook.settings(timeout_s=30)}))
    yield hooks
    await hooks.close()


def refusing(event: str) -> Any:
    return lambda question: {"refuse": "no"} if question["event"] == event else {}


def changing(**arguments: Any) -> Any:
    return lambda question: {"arguments": arguments} if question["event"] == "before" else {}


async def test_a_refused_call_does_not_start(make_harness: Any, hook: ScriptedHook, hooks: CallHooks) -> None:
    """Its tool does not run, it takes no token of a rate limit, and it is recorded once."""
    ran = []

    async def note(arguments: Any, context: Any) -> str:
        ran.append(arguments)
        return "done"

    harness = make_harness([make_tool("note", note, read_only=False, open_world=True, source="shop")], hooks=hooks)
    harness.rates["shop"] = type("Rate", (), {"per_minute": 1, "burst": 1})
    hook.reply = refusing("before")
    session = harness.session()
    refused = await harness.call(session, 1, "note", arguments={"a": 1})
    assert (refused.error.code, refused.error.executed, refused.error.retryable) == ("PERMISSION_DENIED", "no", False)
    assert ran == []
    assert hook.questions[0]["call"] | {"id": ""} == {
        "id": "",
        "tool": "note",
        "source": "shop",
        "principal": "local",
        "transport": "test",
        "client": "",
        "toolset": "standard",
        "read_only": False,
        "parent": None,
    }
    assert set(harness.counts().values()) == {0}
    hook.reply = lambda _: {}
    assert (await harness.call(session, 2, "note")).text == "done"
    assert [code for _, result, _ in harness.recorder.ended_calls for code in [result.outcome]] == [
        "PERMISSION_DENIED",
        "ok",
    ]


async def test_changed_arguments_and_results(make_harness: Any, hook: ScriptedHook, hooks: CallHooks) -> None:
    """The tool gets the changed arguments, the caller the changed result; a repeat of the request gets it too, and the
    hook is not asked again.
    """
    harness = make_harness([make_tool("say", say)], hooks=hooks)

    def reply(question: dict[str, Any]) -> dict[str, Any]:
        if question["event"] == "before":
            return {"arguments": {"text": question["arguments"]["text"].upper()}}
        text = question["result"]["content"][0]["text"]
        return {"result": {"content": [{"type": "text", "text": f"<{text}>"}]}}

    hook.reply = reply
    session = harness.session()
    assert (await harness.call(session, 1, "say", arguments={"text": "hi"})).text == "<HI>"
    assert hook.questions[1]["arguments"] == {"text": "HI"}
    repeated = harness.submit(session, 1, "say", {"text": "hi"})
    assert isinstance(repeated, ToolResult)
    assert (repeated.text, repeated.metadata.replayed) == ("<HI>", True)
    assert len(hook.questions) == 2
    call = harness.recorder.ended_calls[0][0]
    assert (call.changed_by, call.result_changed_by) == ("guard", "guard")


async def test_a_withheld_result(make_harness: Any, hook: ScriptedHook, hooks: CallHooks) -> None:
    """The call had its effect; the caller gets nothing of the result."""
    harness = make_harness([make_tool("say", say, read_only=False)], hooks=hooks)
    hook.reply = refusing("after")
    result = await harness.call(harness.session(), 1, "say")
    assert (result.error.code, result.error.executed, result.outputs) == ("PERMISSION_DENIED", "yes", ())


async def test_errors_of_tools_are_results_and_refusals_are_not(
    make_harness: Any, hook: ScriptedHook, hooks: CallHooks
) -> None:
    """A tool's error may quote data; the daemon's own errors do not."""

    async def fail(arguments: Any, context: Any) -> str:
        error = NotFoundError("No customer ann@x.example.")
        error.output = ToolOutput("No ann@x.example.")
        raise error

    harness = make_harness([make_tool("fail", fail), make_tool("say", say, source="shop")], hooks=hooks)

    def reply(question: dict[str, Any]) -> dict[str, Any]:
        if question["event"] == "before":
            return {}
        error = question["result"]["error"]
        return {"result": {"content": [], "error": {**error, "message": "No customer [email]."}}}

    hook.reply = reply
    session = harness.session()
    result = await harness.call(session, 1, "fail")
    assert (result.error.code, result.error.message, result.outputs) == ("NOT_FOUND", "No customer [email].", ())
    harness.rates["shop"] = type("Rate", (), {"per_minute": 1, "burst": 1})
    hook.reply = lambda _: {}
    await harness.call(session, 2, "say")
    asked = len(hook.questions)
    assert (await harness.call(session, 3, "say")).error.code == "RATE_LIMITED"
    assert len(hook.questions) == asked + 1, "before the call only"


async def test_nothing_of_a_result_is_sent_before_the_hook_has_seen_it(
    make_harness: Any, hook: ScriptedHook, hooks: CallHooks
) -> None:
    """No chunks, and progress without the tool's words; with a hook that is asked before calls only, both are sent."""

    async def stream(arguments: Any, context: Any) -> str:
        context.stream("secret text")
        context.progress("found ann@x.example", 1, 2)
        return "secret text"

    harness = make_harness([make_tool("stream", stream)], hooks=hooks)
    session = harness.session(streaming=True)
    await harness.call(session, 1, "stream")
    assert harness.port.chunks == []
    assert [(report.message, report.done, report.total) for _, report in harness.port.heard] == [
        ("stream: running", 1, 2)
    ]
    hooks.apply(read_hooks({"guard": hook.settings(events=["before"])}))
    await harness.call(session, 2, "stream")
    assert harness.port.chunks == [(2, "secret text")]
    assert harness.port.heard[-1][1].message == "found ann@x.example"


async def test_hooks_are_asked_about_child_calls(
    make_harness: Any, make_orchestration: Any, hook: ScriptedHook, hooks: CallHooks
) -> None:
    """A pipeline cannot evade a hook: each call in it is asked about, with the id of the call around it."""
    harness = make_harness([make_tool("say", say), make_orchestration(calling("say", text="hi"))], hooks=hooks)
    hook.reply = lambda question: {"refuse": "no"} if question["call"]["tool"] == "say" else {}
    result = await harness.call(harness.session(), 1, "compose")
    assert result.structured["error"]["code"] == "PERMISSION_DENIED"
    compose, child, _ = (question["call"] for question in hook.questions)
    assert (compose["tool"], child["tool"], child["parent"]) == ("compose", "say", compose["id"])


async def test_hooks_are_not_asked_about_an_agents_own_calls(
    make_harness: Any, make_orchestration: Any, hook: ScriptedHook, hooks: CallHooks
) -> None:
    """Model turns, for example, are part of the agent's call."""
    hidden = make_tool("turn", say)

    async def run(arguments: Any, context: Any) -> str:
        return str((await context.call(hidden, {"text": "hi"}, name="turn")).text)

    harness = make_harness([make_orchestration(run)], hooks=hooks)
    assert (await harness.call(harness.session(), 1, "compose")).text == "hi"
    assert [question["call"]["tool"] for question in hook.questions] == ["compose", "compose"]


@pytest.mark.parametrize(("event", "executed"), [("before", "no"), ("after", "maybe")])
async def test_a_call_that_ends_while_a_hook_is_asked(
    make_harness: Any, hook: ScriptedHook, hooks: CallHooks, event: str, executed: str
) -> None:
    """A cancelled call and one whose time is over are answered at once; the latter says whether it had an effect."""
    hooks.apply(read_hooks({"guard": hook.settings(timeout_s=30, events=[event])}))
    hook.held = asyncio.Event()
    harness = make_harness([make_tool("say", say, read_only=False, open_world=True)], hooks=hooks)
    session = harness.session()
    harness.submit(session, "a", "say")
    running = harness.submit(session, "b", "say")
    await harness.until(lambda: len(hook.questions) == 2)
    assert harness.router.permits.in_use == 0, "a call that waits for a hook holds no permit"
    assert harness.router.cancel(session, running.key.replace("b", "a"))
    await harness.until(lambda: "a" in harness.port.answers)
    late = await harness.expire(running)
    errors = harness.port.answers["a"].error, late.error
    assert [(error.code, error.executed) for error in errors] == [("CANCELLED", executed), ("TIMEOUT", executed)]


async def test_cached_results(make_harness: Any, hook: ScriptedHook, hooks: CallHooks) -> None:
    """Hooks are asked about each call, also if a cached result answers it; changed arguments are other arguments."""
    runs = []

    async def count(arguments: Any, context: Any) -> str:
        runs.append(arguments.get("a"))
        return f"run {len(runs)}"

    tool = make_tool("count", count, source="shop", open_world=True).cached_for(60.0)
    harness = make_harness([tool], hooks=hooks)
    session = harness.session()

    def reply(question: dict[str, Any]) -> dict[str, Any]:
        if question["event"] == "before":
            return {}
        text = question["result"]["content"][0]["text"]
        return {"result": {"content": [{"type": "text", "text": f"{text} seen {len(hook.questions)}"}]}}

    hook.reply = reply
    assert (await harness.call(session, 1, "count", arguments={"a": 1})).text == "run 1 seen 2"
    assert (await harness.call(session, 2, "count", arguments={"a": 1})).text == "run 1 seen 4"
    hook.reply = changing(a=2)
    assert (await harness.call(session, 3, "count", arguments={"a": 1})).text == "run 2"
    hook.reply = lambda _: {}
    assert (await harness.call(session, 4, "count", arguments={"a": 2})).text == "run 2"
    assert runs == [1, 2]


async def test_the_journal_knows_the_callers_arguments(make_harness: Any, hook: ScriptedHook, hooks: CallHooks) -> None:
    """A repeat after a restart has the same arguments, not those of the hook."""
    harness = make_harness([make_tool("say", say, read_only=False, open_world=True)], hooks=hooks)
    hook.reply = changing(text="changed")
    assert (await harness.call(harness.session(), 1, "say", arguments={"text": "hi"})).text == "changed"
    assert [call.arguments_hash for call in harness.journal.calls.values()] == [arguments_digest({"text": "hi"})]
