"""Tools that their server runs only as tasks."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.sources.mcp.conftest import FakeListener, Opening
from tests.sources.mcp.task_server import ID, RESULT, TaskServer, serving_tasks, task
from toold.protocol.error_codes import CallError, CallTimeoutError
from toold.sources.mcp import upstream_tasks
from toold.tools import ToolOutput


@pytest.fixture
async def server() -> AsyncIterator[tuple[TaskServer, str]]:
    async with serving_tasks() as serving:
        yield serving


async def opened_at(opened: Opening, url: str) -> FakeListener:
    return await opened(url=url, allow_private=True)


async def test_a_task_is_awaited_and_its_result_passed_on(
    opened: Opening, server: tuple[TaskServer, str], context_with: Any
) -> None:
    """As if the server had answered the call; the messages of the task are progress."""
    tasks, url = server
    tasks.looks = [
        task("working", "reading"),
        task("working", "reading"),
        task("working", "writing"),
        task("completed"),
    ]
    listener, context = await opened_at(opened, url), context_with(60.0)
    output = await listener.call("research", context=context)
    assert isinstance(output, ToolOutput)
    assert [getattr(block, "text", None) for block in output.content or ()] == ["found"]
    assert output.meta == RESULT["_meta"]
    assert context.reports == ["reading", "writing"]
    (call,) = tasks.params_of("tools/call")
    assert call["task"]["ttl"] > 60_000
    assert tasks.params_of("tasks/result") == [{"taskId": ID}]
    assert not tasks.cancelled.is_set()


async def test_a_cancelled_call_cancels_its_task(opened: Opening, server: tuple[TaskServer, str]) -> None:
    """And so does a call that reaches its deadline."""
    tasks, url = server
    tasks.looks = [task("working")]
    listener = await opened_at(opened, url)
    calling = asyncio.create_task(listener.call("research"))
    await tasks.looked.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    await tasks.cancelled.wait()
    tasks.cancelled.clear()
    with pytest.raises(CallTimeoutError):
        await listener.call("research", timeout_s=0.5)
    await tasks.cancelled.wait()
    assert {params["taskId"] for params in tasks.params_of("tasks/cancel")} == {ID}


@pytest.mark.parametrize(
    ("looks", "result", "message"),
    [
        ([task("cancelled")], {"result": RESULT}, "s cancelled the task of this call."),
        ([task("completed", taskId="another")], {"result": RESULT}, "s's task is not valid MCP."),
        ([task("sleeping")], {"result": RESULT}, "s's task is not valid MCP."),
        ([task("failed")], {"error": {"code": -32602, "message": "no such topic"}}, "no such topic"),
        ([task("completed")], {"result": {"content": 7}}, "s's answer is not valid MCP."),
    ],
)
async def test_a_task_that_fails_is_not_repeated(
    opened: Opening, server: tuple[TaskServer, str], looks: list[Any], result: dict[str, Any], message: str
) -> None:
    """The error says why, and that the tool may have run."""
    tasks, url = server
    tasks.looks, tasks.result = looks, result
    listener = await opened_at(opened, url)
    with pytest.raises(CallError, match=message) as caught:
        await listener.call("research")
    assert caught.value.executed != "no"
    assert not caught.value.retryable
    assert len(tasks.params_of("tools/call")) == 1


async def test_a_server_may_answer_without_a_task(opened: Opening, server: tuple[TaskServer, str]) -> None:
    """Its result is the result; a server that does not offer tasks is not asked for one."""
    tasks, url = server
    tasks.created = RESULT
    listener = await opened_at(opened, url)
    assert "found" in str(await listener.call("research"))
    tasks.capability = None
    other = await opened("t", url=url, allow_private=True)
    assert "found" in str(await other.call("research"))
    assert ["task" in params for params in tasks.params_of("tools/call")] == [True, False]


@pytest.mark.parametrize(
    ("suggested", "pause_s"),
    [(200, 0.2), (float("nan"), 1.0), (float("inf"), 5.0), (-5, 0.05), (10**400, 5.0), ("soon", 1.0), (None, 1.0)],
)
def test_the_pause_between_looks_is_bounded(suggested: object, pause_s: float) -> None:
    """Whatever the server suggests: a timer for NaN would put all timers of the event loop out of order."""
    assert upstream_tasks._pause_s(suggested) == pause_s
