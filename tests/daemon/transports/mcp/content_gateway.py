"""A server of the SDK with resources and prompts, and a daemon that has two of them as sources."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import mcp_types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import Context, MCPServer
from tests.simulated_daemon import TOKEN
from toold.daemon.app import Daemon
from toold.serving import HttpServer


def upstream(name: str) -> MCPServer[Any]:
    """A server with a resource of each kind, prompts, completions and a tool that announces changes."""
    server: MCPServer[Any] = MCPServer("upstream")

    @server.resource("test://text", mime_type="text/plain")
    def text() -> str:
        return "plain"

    @server.resource("test://image", mime_type="image/png")
    def image() -> bytes:
        return b"\x89PNG"

    @server.resource("test://item/{id}")
    def item(id: str) -> str:  # noqa: A002 - the variable of the template
        return f"item {id}"

    @server.prompt()
    def greeting(name: str) -> str:
        """Greets someone."""
        return f"Greet {name}."

    form = {"type": "object", "properties": {"mood": {"type": "string"}}, "required": ["mood"]}
    question = mcp_types.ElicitRequestFormParams(message="How?", requested_schema=form)
    asked = mcp_types.InputRequiredResult(input_requests={"mood": mcp_types.ElicitRequest(params=question)})

    def mood(ctx: Context[Any]) -> str | None:
        answer: Any = (ctx.input_responses or {}).get("mood")
        return None if answer is None else f"Be {answer.content['mood']}."

    @server.prompt(name=f"asking_{name}")
    def asking(ctx: Context[Any]) -> str | mcp_types.InputRequiredResult:
        """Asks for a mood."""
        return mood(ctx) or asked

    @server.resource(f"asking://{name}/{{id}}")
    def asking_item(id: str, ctx: Context[Any]) -> str | mcp_types.InputRequiredResult:  # noqa: A002 - as above
        """Asks for a mood."""
        answer = mood(ctx)
        return asked if answer is None else f"{id}: {answer}"

    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator]
    async def complete(ref: Any, argument: Any, context: Any) -> Any:
        return mcp_types.Completion(values=[f"{argument.value}da"], total=1)

    @server.tool(name=f"touch_{name}")
    async def touch(ctx: Context[Any]) -> str:
        """Announces a changed resource."""
        await ctx.notify_resource_updated("test://text")
        return "touched"

    return server


@asynccontextmanager
async def served(server: MCPServer[Any]) -> AsyncIterator[str]:
    """Serves it over HTTP in this process; yields its URL."""
    http = HttpServer(server.streamable_http_app(), "127.0.0.1", 0, "--upstream")
    ready, stop = asyncio.Event(), asyncio.Event()

    async def serve() -> None:  # in a separate task, as the SDK requires
        async with server.session_manager.run():
            await http.start()
            ready.set()
            await stop.wait()
            await http.close()

    serving = asyncio.create_task(serve())
    await ready.wait()
    try:
        yield f"http://127.0.0.1:{http.port}/mcp"
    finally:
        stop.set()
        await serving


@dataclass(frozen=True)
class Gateway:
    """A daemon with two sources that list the same URIs."""

    daemon: Daemon
    guest: str
    """A token whose toolset has no tool of the sources."""
    workspace: Path

    @asynccontextmanager
    async def client(self, mode: str = "auto", token: str = TOKEN, **options: Any) -> AsyncIterator[Client]:
        headers = {"authorization": f"Bearer {token}"}
        url = f"http://127.0.0.1:{self.daemon.http.port}/mcp"
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode, cache=None, **options) as client,
        ):
            yield client
