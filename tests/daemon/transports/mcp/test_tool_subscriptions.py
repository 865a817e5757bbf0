"""Notifications of changed tools."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from toold.daemon.app import Daemon
from toold.daemon.config.settings_mapping import tool_catalog
from toold.daemon.transports.mcp import tool_subscriptions
from toold.tools import Tool, ToolRegistry

from .conftest import Client, Connect, Serve, request


async def nothing(*_: Any) -> str:
    return "nothing"


@pytest.fixture
async def daemon(serve: Serve, make_tool: Callable[..., Tool]) -> Daemon:
    return await serve(make_tool("a", nothing), TOOLD_DEFAULT_TOOLSET="full")


class Listener:
    """An open stream."""

    def __init__(self, answer: httpx.Response) -> None:
        self.lines = answer.aiter_lines()

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(20):
            async for line in self.lines:
                if line.startswith("data: "):
                    message: dict[str, Any] = json.loads(line.removeprefix("data: "))
                    return message
        raise AssertionError("the stream ended")


@asynccontextmanager
async def listening(client: Client, **wanted: bool) -> AsyncIterator[Listener]:
    message, headers = request("subscriptions/listen", {"notifications": wanted}, revision="2026-07-28", request_id=9)
    async with client.http.stream("POST", "/mcp", json=message, headers=headers) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        yield Listener(answer)


async def test_changes_are_sent(connect: Connect, daemon: Daemon, make_tool: Callable[..., Tool]) -> None:
    """First the acknowledgement, then each change, with the id of the subscribing request."""
    async with listening(connect(daemon), toolsListChanged=True, promptsListChanged=True) as stream:
        meta = {"io.modelcontextprotocol/subscriptionId": 9}
        first = await stream.next()
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"] == {
            "notifications": {"toolsListChanged": True, "promptsListChanged": True},
            "_meta": meta,
        }
        daemon.replace_catalog(
            tool_catalog(daemon.settings, ToolRegistry([make_tool("a", nothing), make_tool("b", nothing)]))
        )
        assert await stream.next() == {
            "jsonrpc": "2.0",
            "method": "notifications/tools/list_changed",
            "params": {"_meta": meta},
        }


async def test_shutdown_ends_the_stream_with_an_answer(connect: Connect, daemon: Daemon) -> None:
    """The client knows that the end was intended."""
    async with listening(connect(daemon), toolsListChanged=True) as stream:
        await stream.next()
        daemon.http_host.mcp.close_streams()
        last = await stream.next()
        assert (last["id"], last["result"]["resultType"]) == (9, "complete")


async def test_only_subscribed_notifications_are_sent(
    connect: Connect, daemon: Daemon, make_tool: Callable[..., Tool]
) -> None:
    """A client that subscribes only to prompts gets no notifications about tools."""
    async with listening(connect(daemon), promptsListChanged=True) as stream:
        assert (await stream.next())["params"]["notifications"] == {"promptsListChanged": True}
        daemon.replace_catalog(tool_catalog(daemon.settings, ToolRegistry([make_tool("b", nothing)])))
        daemon.http_host.mcp.close_streams()
        assert "result" in await stream.next()


async def test_idle_streams_get_comments(connect: Connect, daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """They keep proxies from closing the connection."""
    monkeypatch.setattr(tool_subscriptions, "_ALIVE_EVERY_S", 0.01)
    async with listening(connect(daemon), toolsListChanged=True) as stream, asyncio.timeout(20):
        async for line in stream.lines:
            if line.startswith(":"):
                break


async def test_disconnected_listeners_are_removed(connect: Connect, daemon: Daemon) -> None:
    """Nothing is retained for them."""
    listeners = daemon.http_host.mcp._methods.subscriptions._listeners
    async with listening(connect(daemon), toolsListChanged=True) as stream:
        await stream.next()
        assert len(listeners) == 1
    async with asyncio.timeout(20):
        while listeners:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("notifications", [None, 7, []])
async def test_invalid_subscriptions(connect: Connect, daemon: Daemon, notifications: object) -> None:
    """An error of the request."""
    status, error = await connect(daemon).error("subscriptions/listen", {"notifications": notifications})
    assert (status, error["code"]) == (400, -32602)


async def test_a_client_that_accepts_no_events(connect: Connect, daemon: Daemon) -> None:
    """It could not receive notifications, and gets an error."""
    request = connect(daemon).error(
        "subscriptions/listen", {"notifications": {}}, headers={"accept": "application/json"}
    )
    assert (await request)[0] == 400
