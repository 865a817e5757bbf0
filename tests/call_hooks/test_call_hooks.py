"""Hooks at HTTP addresses: what their answers do, and what happens without one."""

import asyncio
import json
import re
from typing import Any

import msgspec
import pytest
from tests.waiting import until
from toold.call_hooks import call_hooks, hook_server
from toold.protocol.error_codes import InvalidArgumentsError, PermissionDeniedError, ServiceUnavailableError, ToolError
from toold.protocol.tool_call import Metadata, TextContent, Timings, ToolResult

from .conftest import CALL, Asked
from .scripted_hook import Reply, ScriptedHook

RESULT = ToolResult(Metadata(1.0, Timings()), (TextContent("ann@x.example"),))


async def test_a_hook_allows_changes_and_refuses(hook: ScriptedHook, asked: Asked) -> None:
    """An empty object, or 204, allows; arguments replace the call's; refuse is an error with the hook's words."""
    asked.configure(guard=hook.settings())
    assert await asked.before(id=1) == {"id": 1}
    hook.reply = lambda _: 204
    assert await asked.before(id=1) == {"id": 1}
    hook.reply = lambda question: {"arguments": {**question["arguments"], "limit": 5}}
    assert await asked.before(id=1) == {"id": 1, "limit": 5}
    hook.reply = lambda _: {"refuse": "Not\x1b[31m on\nSundays."}
    with pytest.raises(PermissionDeniedError) as refused:
        await asked.before(id=1)
    error = refused.value
    assert error.message == "The hook guard refuses the call: Not [31m on\nSundays."
    assert (error.executed, error.details) == ("no", {"hook": "guard"})
    assert error.summary == "The hook guard refuses the call."
    assert len(hook.connections) == 1, "connections are reused"
    counts = asked.hooks.counts["guard", "before"]
    assert counts.outcomes == {"allowed": 2, "changed": 1, "refused": 1, "failed": 0}
    assert counts.seconds > 0


async def test_results(hook: ScriptedHook, asked: Asked) -> None:
    """A hook changes a result, or withholds it; what is said about effects is true."""
    asked.configure(guard=hook.settings(events=["after"]))
    hook.reply = lambda _: {"result": {"content": [{"type": "text", "text": "[email]"}]}}
    changed = await asked.hooks.after(CALL, {"id": 1}, RESULT, long=False)
    assert changed is not None
    assert (changed[0].text, changed[1]) == ("[email]", "guard")
    assert hook.questions[0]["result"] == {"content": [{"type": "text", "text": "ann@x.example"}]}
    assert await asked.before(id=1) == {"id": 1}
    assert len(hook.questions) == 1, "it is asked after calls only"
    hook.reply = lambda _: {"refuse": "It has an address."}
    failed = ToolResult(Metadata(1.0, Timings()), error=ToolError("TIMEOUT", "late", "maybe", False))
    for result, executed in ((RESULT, "yes"), (failed, "maybe")):
        with pytest.raises(PermissionDeniedError, match="withholds the result: It has") as error:
            await asked.hooks.after(CALL, {}, result, long=False)
        assert error.value.executed == executed


async def test_hooks_see_the_changes_of_those_before_them(hook: ScriptedHook, asked: Asked) -> None:
    """In the order of the configuration; only those that cover the call are asked."""
    asked.configure(first=hook.settings(key=None), other=hook.settings(tools=["x"]), second=hook.settings(timeout_s=4))
    hook.reply = lambda question: {"arguments": {"n": question["arguments"]["n"] + 1}}
    assert await asked.before(n=0) == {"n": 2}
    assert [question["arguments"]["n"] for question in hook.questions] == [0, 1]


def _endless(_: dict[str, Any]) -> Reply:
    return json.dumps({"refuse": "x" * 2000}).encode()


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (lambda _: 500, "HTTP 500"),
        (lambda _: 302, "HTTP 302"),
        (lambda _: b"<html>", "not JSON"),
        (lambda _: {"denied": "x"}, "denied"),
        (_endless, "more than"),
    ],
)
@pytest.mark.parametrize("on_failure", ["refuse", "allow"])
async def test_without_a_usable_answer(
    hook: ScriptedHook, asked: Asked, reply: Any, problem: str, on_failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call is refused, retryable and without effect, or made, as configured; operators learn the reason, the caller
    does not.
    """
    monkeypatch.setattr(hook_server, "MAX_QUESTION_BYTES", 1000)
    asked.configure(guard=hook.settings(on_failure=on_failure))
    hook.reply = reply
    if on_failure == "allow":
        assert await asked.before(id=1) == {"id": 1}
        assert await asked.hooks.after(CALL, {}, RESULT, long=False) is None
    else:
        with pytest.raises(ServiceUnavailableError, match="guard gave no usable answer") as error:
            await asked.before(id=1)
        assert (error.value.executed, error.value.retryable) == ("no", True)
        assert problem not in error.value.message
        with pytest.raises(ServiceUnavailableError, match="its result is withheld") as error:
            await asked.hooks.after(CALL, {}, RESULT, long=False)
        assert (error.value.executed, error.value.retryable) == ("yes", False)
    assert len(asked.hooks.problems) == 1
    assert problem in asked.hooks.problems[0]
    assert asked.hooks.counts["guard", "before"].outcomes["failed"] == 1
    hook.reply = lambda _: {}
    assert await asked.before() == {}
    assert asked.hooks.problems == []


async def test_the_time_for_an_answer_is_limited(hook: ScriptedHook, asked: Asked) -> None:
    """From the question on."""
    asked.configure(guard=hook.settings(timeout_s=0.05))
    hook.held = asyncio.Event()
    with pytest.raises(ServiceUnavailableError):
        await asked.before()
    assert re.search(r"it did not answer within 0(\.0\d)? s", asked.hooks.problems[0])


async def test_questions_at_the_same_time_are_limited(
    hook: ScriptedHook, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Further ones wait, within their time; reloading the hook waits for those that are asked."""
    monkeypatch.setattr(call_hooks, "MAX_QUESTIONS", 2)
    asked.configure(guard=hook.settings(timeout_s=30))
    hook.held = asyncio.Event()
    asking = [asyncio.create_task(asked.before(n=number)) for number in range(3)]
    await until(lambda: len(hook.questions) == 2)
    asked.configure()
    hook.held.set()
    assert await asyncio.gather(*asking) == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert not asked.hooks.active


async def test_invalid_arguments_are_a_failure_of_the_hook(hook: ScriptedHook, asked: Asked) -> None:
    """They are checked as those of a caller are."""
    asked.configure(guard=hook.settings())
    hook.reply = lambda _: {"arguments": {"id": "x"}}

    async def bind(arguments: dict[str, Any]) -> None:
        raise InvalidArgumentsError("id should be an integer")

    with pytest.raises(ServiceUnavailableError):
        await asked.hooks.before(CALL, {"id": 1}, bind, long=False)
    assert "its arguments are invalid: id should be an integer" in asked.hooks.problems[0]


async def test_the_key_and_the_address(hook: ScriptedHook, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is sent; without it, and to a forbidden address, nothing is."""
    monkeypatch.setenv("HOOK_KEY", "k-1234")
    asked.configure(guard=hook.settings(key={"env": "HOOK_KEY"}))
    await asked.before()
    assert hook.headers[0]["authorization"] == "Bearer k-1234"
    monkeypatch.delenv("HOOK_KEY")
    with pytest.raises(ServiceUnavailableError):
        await asked.before()
    assert "HOOK_KEY is not set" in asked.hooks.problems[0]
    asked.configure(guard=hook.settings(allow_private=False))
    with pytest.raises(ServiceUnavailableError):
        await asked.before()
    assert "[hooks.guard] allow_private can allow it" in asked.hooks.problems[0]
    assert len(hook.questions) == 1


async def test_nobody_at_the_address(asked: Asked) -> None:
    """A server that cannot be reached gives no answer."""
    asked.configure(guard={"url": "http://127.0.0.1:9/", "allow_private": True})
    with pytest.raises(ServiceUnavailableError):
        await asked.before()
    assert asked.hooks.problems == ["hook guard: 127.0.0.1 cannot be reached"]


async def test_long_questions_are_written_in_a_thread(hook: ScriptedHook, asked: Asked) -> None:
    """With the same answers."""
    asked.configure(guard=hook.settings())
    text = "x" * 100_000
    hook.reply = lambda question: {"result": question["result"]} if question["event"] == "after" else {}
    result = msgspec.structs.replace(RESULT, outputs=(TextContent(text),))
    changed = await asked.hooks.after(CALL, {"text": text}, result, long=True)
    assert changed is not None
    assert changed[0].text == text
