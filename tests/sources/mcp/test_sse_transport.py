"""Servers of revision 2024-11-05 over HTTP with SSE: the SDK's server, and hostile ones."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from tests.waiting import until
from toold.protocol.error_codes import CallError
from toold.sources import SourceSettingsError, read_sources
from toold.tools import ToolOutput


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    """Serves over HTTP; yields the base URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(
            app, log_level="critical", lifespan="off", timeout_keep_alive=60, timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve([listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = server.force_exit = True
            await task


def sdk_server(cancelled: asyncio.Event) -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer("old")

    @server.tool()
    def echo(text: str) -> str:
        """Say it back."""
        return text

    @server.tool()
    async def nap(ctx: Context[Any]) -> str:
        """Sleep, and report progress."""
        try:
            for number in range(10_000):
                await ctx.report_progress(number, 10_000, "sleeping")
                await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "awake"

    return server


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_the_sdks_server(opened: Any) -> None:
    """Calls at the same time, progress, and cancelling at the deadline."""
    cancelled = asyncio.Event()
    async with served(sdk_server(cancelled).sse_app()) as url:
        source = await opened(url=f"{url}/sse", transport="sse", allow_private=True)
        answers = await asyncio.gather(*(source.call("echo", text=str(number)) for number in range(20)))
        assert [answer.data["result"] for answer in answers if isinstance(answer, ToolOutput)] == [
            str(number) for number in range(20)
        ]
        with pytest.raises(CallError) as late:
            await source.call("nap", timeout_s=0.5)
        assert late.value.code == "TIMEOUT"
        async with asyncio.timeout(20):
            await cancelled.wait()


class Hostile:
    """A server whose events and answers to messages a test writes."""

    def __init__(self) -> None:
        self.first = "event: endpoint\ndata: /messages?id=1\n\n"
        self.events: asyncio.Queue[str | None] = asyncio.Queue()
        self.status: Callable[[dict[str, Any]], int] = lambda _: 202
        self.accepted = b""
        """The body of the answers to accepted messages."""
        self.posted: list[dict[str, Any]] = []
        self.app = Starlette(routes=[Route("/sse", self.stream), Route("/messages", self.take, methods=["POST"])])

    async def stream(self, request: Request) -> Response:
        async def body() -> AsyncIterator[str]:
            yield self.first
            while (event := await self.events.get()) is not None:
                yield event

        return StreamingResponse(body(), media_type="text/event-stream")

    async def take(self, request: Request) -> Response:
        message = await request.json()
        self.posted.append(message)
        status = self.status(message)
        if status == 202:
            self.answer(message)
        return Response(self.accepted, status_code=status)

    def answer(self, message: dict[str, Any]) -> None:
        results = {
            "initialize": {
                "protocolVersion": "2024-11-05",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "old", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "seen"}]},
        }
        if (result := results.get(message["method"])) is not None:
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def send(self, message: dict[str, Any]) -> None:
        self.events.put_nowait(f"event: message\ndata: {json.dumps(message)}\n\n")


@pytest.fixture
async def hostile() -> AsyncIterator[tuple[Hostile, str]]:
    server = Hostile()
    async with served(server.app) as url:
        yield server, f"{url}/sse"


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        (
            "event: endpoint\ndata: https://evil.example/messages\n\n",
            "its endpoint is at another origin (evil.example)",
        ),
        ("event: endpoint\ndata: //evil.example:1/\n\n", "another origin"),
        ("event: message\ndata: {}\n\n", "its first event does not name an endpoint"),
        (f"event: endpoint\ndata: /{'x' * 5000}\n\n", "its first event does not name an endpoint"),
    ],
)
async def test_the_endpoint_is_the_servers_own(
    opened: Any, hostile: tuple[Hostile, str], first: str, problem: str
) -> None:
    """Another would get the source's secret."""
    server, url = hostile
    server.first = first
    source = await opened(url=url, transport="sse", allow_private=True, ready=False)
    await source.until(lambda: bool(source.problems))
    assert problem in source.problems[-1]
    assert server.posted == []


async def test_a_message_that_is_not_accepted_fails_at_once(opened: Any, hostile: tuple[Hostile, str]) -> None:
    """With an error of its call alone; the session goes on."""
    server, url = hostile
    source = await opened(url=url, transport="sse", allow_private=True)
    server.status = lambda message: 500 if message.get("method") == "tools/call" else 202
    with pytest.raises(CallError) as refused:
        await source.call("look")
    assert refused.value.code != "TIMEOUT"
    server.status = lambda _: 202
    assert await source.call("look") == "seen"


async def test_the_body_of_an_accepted_message_does_not_matter(opened: Any, hostile: tuple[Hostile, str]) -> None:
    """However long it is: the answer is an event."""
    server, url = hostile
    source = await opened(url=url, transport="sse", allow_private=True, max_answer_bytes=100_000)
    server.accepted = b"x" * 1_000_000
    assert await source.call("look") == "seen"


async def test_a_stream_that_ends_or_lies(opened: Any, hostile: tuple[Hostile, str]) -> None:
    """Nonsense and answers to unknown requests are ignored; an end is a lost connection, and the source reconnects."""
    server, url = hostile
    source = await opened(url=url, transport="sse", allow_private=True)
    server.events.put_nowait("event: message\ndata: nonsense\n\n")
    server.events.put_nowait("event: other\ndata: x\n\n: comment\n\n")
    server.send({"jsonrpc": "2.0", "id": 99_999, "result": {}})
    assert await source.call("look") == "seen"
    began = len([message for message in server.posted if message["method"] == "initialize"])
    server.events.put_nowait(None)
    await until(lambda: len([message for message in server.posted if message["method"] == "initialize"]) > began)
    assert await source.call_until_available("look") == "seen"


async def test_an_event_that_is_too_long_ends_the_connection(opened: Any, hostile: tuple[Hostile, str]) -> None:
    """It is not held in memory."""
    server, url = hostile
    source = await opened(url=url, transport="sse", allow_private=True, max_answer_bytes=100_000)
    server.events.put_nowait("event: message\ndata: " + "x" * 1_000_000)
    await source.until(lambda: bool(source.problems))


async def test_streamable_http_is_something_else(opened: Any, hostile: tuple[Hostile, str]) -> None:
    """The problem says what is there."""
    _, url = hostile
    source = await opened(url=f"{url}x", transport="sse", allow_private=True, ready=False)
    await source.until(lambda: bool(source.problems))
    assert "it answered HTTP 404; check url" in source.problems[-1]


def test_sse_needs_a_url() -> None:
    """A program has its standard streams."""
    with pytest.raises(SourceSettingsError, match='transport = "sse" requires url'):
        read_sources({"s": {"type": "mcp", "command": ["x"], "transport": "sse"}})
