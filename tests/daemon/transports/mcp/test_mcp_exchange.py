"""Progress and answers of one call."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

from toold.daemon.transports.mcp.mcp_exchange import ABSENT_PORT, ALIVE, McpExchange
from toold.protocol.mcp.mcp_revision import REVISIONS
from toold.protocol.mcp.request_envelope import RequestEnvelope
from toold.protocol.tool_call import Metadata, Progress, TextContent, Timings, ToolResult

RESULT = ToolResult(Metadata(1.0, Timings()), (TextContent("hi"),))
NEW = REVISIONS["2026-07-28"]
RUNNING: Any = SimpleNamespace(heartbeat=lambda now: Progress(f"at work for {now:g} s"))


def params_of(data: bytes) -> dict[str, Any]:
    """Returns the parameters of the only event."""
    message: dict[str, Any] = json.loads(data.split(b"data: ")[1])
    assert message["method"] == "notifications/progress"
    params: dict[str, Any] = message["params"]
    return params


async def test_only_the_latest_progress_is_sent() -> None:
    """Once, for a client with a progress token."""
    exchange = McpExchange(1, RequestEnvelope(NEW, progress_token="t"))
    assert exchange.reports() == b""
    assert exchange.progress(RUNNING, Progress("one"))
    assert exchange.progress(RUNNING, Progress("two"))
    await exchange.wait_changed()
    assert params_of(exchange.reports())["message"] == "two"
    assert exchange.reports() == b""


def test_a_heartbeat_reports_progress() -> None:
    """A silent tool is reported as running."""
    exchange = McpExchange(1, RequestEnvelope(NEW, progress_token="t"))
    exchange.heartbeat([RUNNING], 5.0)
    assert params_of(exchange.reports())["message"] == "at work for 5 s"


async def test_a_client_without_a_token() -> None:
    """It gets nothing between heartbeats, and an SSE comment at each."""
    exchange = McpExchange(1, RequestEnvelope(NEW))
    assert not exchange.progress(RUNNING, Progress("one"))
    waiting = asyncio.create_task(exchange.wait_changed())
    await asyncio.sleep(0)
    assert not waiting.done()
    exchange.heartbeat([RUNNING], 5.0)
    await waiting
    assert exchange.reports() == ALIVE


async def test_the_answer() -> None:
    """It has the id of the client's request, and waits to be sent."""
    exchange = McpExchange("seven", RequestEnvelope(NEW))
    assert exchange.deliver(RUNNING, exchange.render(RUNNING, RESULT)) is None
    await exchange.wait_changed()
    assert exchange.answer is not None
    message = json.loads(exchange.answer)
    assert (message["id"], message["result"]["content"][0]["text"]) == ("seven", "hi")


async def test_the_absent_port() -> None:
    """Without a client, an answer is encoded to measure its size, and dropped."""
    answer = ABSENT_PORT.render(RUNNING, RESULT)
    assert b'"hi"' in answer
    await ABSENT_PORT.deliver(RUNNING, answer)
    assert not ABSENT_PORT.progress(RUNNING, Progress("x"))
    ABSENT_PORT.chunk(RUNNING, "x")
    ABSENT_PORT.heartbeat([RUNNING], 1.0)
