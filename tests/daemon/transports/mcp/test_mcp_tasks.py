"""Tasks in both forms, over real sockets."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from mcp_types import _v2025_11_25 as asked_types
from toold.daemon.app import Daemon
from toold.daemon.transports.mcp import mcp_calls
from toold.protocol.authorization import Authorization
from toold.protocol.error_codes import ToolExecutionError
from toold.protocol.tool_call import Principal
from toold.tools import Tool

from .conftest import ASKED, STATELESS, Client, Connect, Serve


class Job:
    """A tool that the test ends."""

    def __init__(self) -> None:
        self.leave = asyncio.Event()

    def tool(self, make_tool: Callable[..., Tool], name: str, outcome: Callable[[], Any]) -> Tool:
        async def run(_: Any, context: Any) -> Any:
            context.progress("at work", 1, 2)
            await self.leave.wait()
            return outcome()

        return make_tool(name, run, read_only=False)


def fail() -> None:
    raise ToolExecutionError("it broke", executed="yes")


@pytest.fixture
def job() -> Job:
    return Job()


@pytest.fixture
async def daemon(serve: Serve, make_tool: Callable[..., Tool], job: Job, monkeypatch: pytest.MonkeyPatch) -> Daemon:
    monkeypatch.setattr(mcp_calls, "TASK_AFTER_S", 0.01)

    async def quick(_: Any, __: Any) -> str:
        return "quick"

    tools = [
        job.tool(make_tool, "work", lambda: {"done": True}),
        job.tool(make_tool, "fail", fail),
        make_tool("quick", quick),
    ]
    return await serve(*tools, TOOLD_DEFAULT_TOOLSET="full")


async def offered(client: Client, name: str) -> dict[str, Any]:
    """Returns the task that a call has become."""
    task = await client.call(name, tasks=True)
    assert task["resultType"] == "task"
    return task


async def ended(client: Client, task_id: str) -> dict[str, Any]:
    """Returns the task once it has ended."""
    async with asyncio.timeout(20):
        while (task := await client.result("tasks/get", {"taskId": task_id}, tasks=True))["status"] == "working":
            await asyncio.sleep(0.01)
    return task


async def test_a_long_call_becomes_a_task(connect: Connect, daemon: Daemon, job: Job) -> None:
    """If its client declares the extension: it can be queried at once, and has the result when it is done."""
    client = connect(daemon)
    task = await offered(client, "work")
    described = {"taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs", "statusMessage"}
    assert set(task) == {"resultType", "_meta"} | described
    assert (task["status"], task["statusMessage"], task["ttlMs"]) == ("working", "at work", 86_400_000)
    result = datetime.fromisoformat(task["createdAt"])
    assert abs((datetime.now(UTC) - result).total_seconds()) < 60
    working = await client.result("tasks/get", {"taskId": task["taskId"]}, tasks=True)
    assert (working["status"], working["resultType"]) == ("working", "complete")
    job.leave.set()
    done = await ended(client, task["taskId"])
    assert done["status"] == "completed"
    assert done["result"]["structuredContent"] == {"done": True}
    assert done["lastUpdatedAt"] >= done["createdAt"] == task["createdAt"]


async def test_a_short_call_is_answered_directly(connect: Connect, daemon: Daemon) -> None:
    """Also for clients that accept tasks; nothing is retained for it."""
    assert (await connect(daemon).call("quick", tasks=True))["content"][0]["text"] == "quick"
    assert len(daemon.router.sessions) == 0


@pytest.mark.parametrize("options", [{}, {"tasks": True, "meta": {"progressToken": 1}}])
async def test_clients_without_tasks_wait(connect: Connect, daemon: Daemon, job: Job, options: dict[str, Any]) -> None:
    """So do clients that requested progress, which tasks do not have."""
    client = connect(daemon)
    meta = {"_meta": options["meta"]} if "meta" in options else {}
    task = asyncio.create_task(client.ask("tools/call", {"name": "work", **meta}, tasks=options.get("tasks", False)))
    await asyncio.sleep(0.2)
    assert not task.done() or options
    job.leave.set()
    assert '"done":true' in (await task).text


async def test_a_tool_error_completes_the_task(connect: Connect, daemon: Daemon, job: Job) -> None:
    """The error is its result; a failed task would have none."""
    client = connect(daemon)
    task = await offered(client, "fail")
    job.leave.set()
    done = await ended(client, task["taskId"])
    assert (done["status"], done["result"]["isError"]) == ("completed", True)
    assert done["statusMessage"] == "it broke"


async def test_cancelling(connect: Connect, daemon: Daemon) -> None:
    """It is acknowledged, and the task is then cancelled; cancelling again changes nothing."""
    client = connect(daemon)
    task = await offered(client, "work")
    for _ in range(2):
        assert (await client.result("tasks/cancel", {"taskId": task["taskId"]}, tasks=True))["resultType"] == "complete"
        done = await ended(client, task["taskId"])
        assert done["status"] == "cancelled"
        assert "result" not in done


async def test_updates_are_ignored(connect: Connect, daemon: Daemon) -> None:
    """Tasks request no input."""
    client = connect(daemon)
    task = await offered(client, "work")
    params = {"taskId": task["taskId"], "inputResponses": {"x": {}}}
    assert (await client.result("tasks/update", params, tasks=True))["resultType"] == "complete"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_tasks_require_the_extension(connect: Connect, daemon: Daemon, method: str) -> None:
    """The error names the missing capability."""
    status, error = await connect(daemon).error(method, {"taskId": "x"})
    assert (status, error["code"]) == (400, -32021)
    assert error["data"] == {"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}


@pytest.mark.parametrize("task_id", ["x", "19a-x", "zz-x", "", 7, None, "1" * 300 + "-x"])
async def test_unknown_tasks(connect: Connect, daemon: Daemon, task_id: object) -> None:
    """An error of the request, in both forms."""
    named = {"mcp-name": str(task_id)} if isinstance(task_id, str) else {}
    _, error = await connect(daemon).error("tasks/get", {"taskId": task_id}, tasks=True, headers=named)
    assert error["code"] in {-32602, -32020}
    for method in ("tasks/get", "tasks/result", "tasks/cancel"):
        assert (await connect(daemon, ASKED).error(method, {"taskId": task_id}))[1]["code"] == -32602


async def test_tasks_of_other_principals(connect: Connect, daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another principal cannot find a task by its id."""
    client = connect(daemon)
    task = await offered(client, "work")

    async def somebody_else(_: str | None) -> Authorization:
        return Authorization(Principal("somebody else"))

    monkeypatch.setattr(daemon.http_host.mcp, "_authenticate", somebody_else)
    assert (await client.error("tasks/get", {"taskId": task["taskId"]}, tasks=True))[1]["code"] == -32602


async def test_a_requested_task(connect: Connect, daemon: Daemon, job: Job) -> None:
    """The older form: the call's parameter requests it; its result is fetched and waited for."""
    client = connect(daemon, ASKED)
    created = await client.result("tools/call", {"name": "work", "arguments": {}, "task": {"ttl": 60_000}})
    task = asked_types.CreateTaskResult.model_validate(created).task
    assert (task.status, task.ttl) == ("working", 86_400_000)
    got = asked_types.GetTaskResult.model_validate(await client.result("tasks/get", {"taskId": task.task_id}))
    assert got.status == "working"
    fetched = asyncio.create_task(client.result("tasks/result", {"taskId": task.task_id}))
    await asyncio.sleep(0.05)
    assert not fetched.done()
    job.leave.set()
    result = await fetched
    assert result["structuredContent"] == {"done": True}
    assert result["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": task.task_id}
    assert (await client.result("tasks/get", {"taskId": task.task_id}))["status"] == "completed"


async def test_a_requested_task_that_fails(connect: Connect, daemon: Daemon, job: Job) -> None:
    """A tool's error makes the task failed, and the result contains it."""
    client = connect(daemon, ASKED)
    created = await client.result("tools/call", {"name": "fail", "task": {}})
    job.leave.set()
    params = {"taskId": created["task"]["taskId"]}
    assert (await client.result("tasks/result", params))["isError"] is True
    assert (await client.result("tasks/get", params))["status"] == "failed"


async def test_cancelling_a_requested_task(connect: Connect, daemon: Daemon) -> None:
    """The answer is the cancelled task; an ended one cannot be cancelled."""
    client = connect(daemon, ASKED)
    created = await client.result("tools/call", {"name": "work", "task": {}})
    params = {"taskId": created["task"]["taskId"]}
    assert (await client.result("tasks/cancel", params))["status"] == "cancelled"
    status, error = await client.error("tasks/cancel", params)
    assert (status, error["code"], "cancelled" in error["message"]) == (200, -32602, True)


async def test_a_refused_call_is_not_a_task(connect: Connect, daemon: Daemon) -> None:
    """A call that did not start is answered at once, also if it requested a task."""
    client = connect(daemon, ASKED)
    assert (await client.error("tools/call", {"name": "none", "task": {}}))[1]["code"] == -32602


@pytest.mark.parametrize("revision", ["2025-06-18", STATELESS])
async def test_the_task_parameter_in_other_revisions(connect: Connect, daemon: Daemon, revision: str) -> None:
    """It is ignored in revisions without requested tasks."""
    result = await connect(daemon, revision).result("tools/call", {"name": "quick", "task": {"ttl": 1}})
    assert result["content"][0]["text"] == "quick"
