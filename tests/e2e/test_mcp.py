"""MCP against the real daemon: the SDK's client in both modes, and tasks across a restart and a crash."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import mcp_types
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

VERSION = "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"
BOTH_WAYS = pytest.mark.parametrize("mode", ["auto", "legacy"])
"""``server/discover`` with stateless requests, or ``initialize``."""


@asynccontextmanager
async def connected(daemon: Any, mode: str, path: str = "/mcp/full") -> AsyncIterator[Client]:
    """The SDK's client with the daemon's token."""
    headers = {"authorization": f"Bearer {daemon.token}"}
    url = f"http://127.0.0.1:{daemon.http_port}{path}"
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60, verify=False) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


@BOTH_WAYS
async def test_sdk_client(daemon: Any, mode: str) -> None:
    """The SDK's client connects, lists tools with annotations, and calls them: text, data, errors and unknown names."""
    async with connected(daemon, mode) as client:
        assert client.protocol_version == (VERSION if mode == "auto" else "2025-11-25")
        assert "toolset 'full'" in (client.instructions or "")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == sorted(tools)
        assert tools["chat"].annotations is not None
        assert tools["chat"].annotations.open_world_hint is True
        reply = await client.call_tool("echo", {"text": "hi"})
        assert [block.text for block in reply.content if isinstance(block, mcp_types.TextContent)] == ["hi"]
        status = await client.call_tool("status", {})
        assert status.structured_content is not None
        assert status.structured_content["status"] == "ready"
        wrong = await client.call_tool("echo", {"txt": "hi"})
        assert wrong.is_error
        assert wrong.structured_content is not None
        assert wrong.structured_content["code"] == "VALIDATION_ERROR"
        with pytest.raises(MCPError, match="no tool"):
            await client.call_tool("no_such_tool", {})


@BOTH_WAYS
async def test_concurrent_calls_with_failures(daemon: Any, mode: str) -> None:
    """A hundred calls of one client, thirty of failing tools, each get their answer."""
    broken = ["bad_raises", "bad_exits", "bad_returns"]
    async with connected(daemon, mode) as client:
        results = await asyncio.gather(
            *(
                client.call_tool(broken[number % 10], {})
                if number % 10 < 3
                else client.call_tool("echo", {"text": f"text {number}"})
                for number in range(100)
            )
        )
    for number, result in enumerate(results):
        text = next(block.text for block in result.content if isinstance(block, mcp_types.TextContent))
        if number % 10 < 3:
            assert result.is_error
            assert broken[number % 10] in text
            assert result.structured_content is not None
            assert result.structured_content["code"] == "TOOL_EXECUTION_ERROR"
            assert isinstance(result.structured_content["retryable"], bool)
        else:
            assert text == f"text {number}"


@BOTH_WAYS
async def test_progress_reaches_the_sdks_client(daemon: Any, mode: str) -> None:
    """Progress arrives while the tool runs."""
    reports: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))

    async with connected(daemon, mode) as client:
        result = await client.call_tool("reports", {}, progress_callback=note)
    assert not result.is_error
    assert reports == [(1.0, 2.0, "half")]


async def test_a_token_is_required(daemon: Any) -> None:
    """Requests without the token or with another one are rejected."""
    url = f"http://127.0.0.1:{daemon.http_port}/mcp"
    async with httpx.AsyncClient(trust_env=False, verify=False) as http:
        for headers in ({}, {"authorization": "Bearer wrong"}):
            answer = await http.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")


async def task_request(daemon: Any, method: str, named: str, **params: Any) -> dict[str, Any]:
    """Returns the result of a request by a client with tasks."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS: {}}},
    }
    headers = {
        "authorization": f"Bearer {daemon.token}",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": VERSION,
        "mcp-method": method,
        "mcp-name": named,
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    url = f"http://127.0.0.1:{daemon.http_port}/mcp/full"
    async with httpx.AsyncClient(trust_env=False, timeout=60, verify=False) as http:
        answer = (await http.post(url, json=message, headers=headers)).json()
    assert "result" in answer, answer
    result: dict[str, Any] = answer["result"]
    return result


async def effect(daemon: Any, text: str, delay_ms: float) -> str:
    """Starts a slow write as a task. Returns the task's id."""
    arguments = {"text": text, "delay_ms": delay_ms}
    task = await task_request(daemon, "tools/call", "sim_effect", name="sim_effect", arguments=arguments)
    assert task["resultType"] == "task"
    task_id: str = task["taskId"]
    return task_id


async def test_a_task_outlives_a_restart_and_a_crash(start_daemon: Any) -> None:
    """An ended task returns its result, an interrupted one OUTCOME_UNKNOWN, and nothing runs twice."""
    daemon = start_daemon()
    done = await effect(daemon, "done", 1500)
    daemon.process.send_signal(signal.SIGTERM)  # a drain lets it finish
    assert daemon.process.wait(timeout=30) == 0
    daemon = start_daemon()
    task = await task_request(daemon, "tasks/get", done, taskId=done)
    assert (task["status"], task["result"]["content"][0]["text"]) == ("completed", "written: done")
    cut = await effect(daemon, "cut", 60_000)
    daemon.process.kill()
    daemon.process.wait()
    daemon = start_daemon()
    task = await task_request(daemon, "tasks/get", cut, taskId=cut)
    assert (task["status"], task["result"]["structuredContent"]["code"]) == ("completed", "OUTCOME_UNKNOWN")
    assert (await task_request(daemon, "tasks/get", done, taskId=done))["status"] == "completed"
    assert Path(daemon.state / "sim_effect.log").read_text().split() == ["done", "cut"]
