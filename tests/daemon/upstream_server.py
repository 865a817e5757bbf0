"""An MCP server of the official SDK in the test's event loop, as a source of a daemon. It asks its clients."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import uvicorn
from mcp.server.mcpserver import Elicit, ListRoots, MCPServer, Resolve, Sample
from mcp_types import CreateMessageResult, ListRootsResult, ModelHint, ModelPreferences, SamplingMessage, TextContent
from pydantic import BaseModel


class Address(BaseModel):
    """A form."""

    city: str


def ask_city() -> Elicit[Address]:
    return Elicit("Which \x1b[2Jcity?", Address)


def ask_model() -> Sample:
    message = SamplingMessage(role="user", content=TextContent(type="text", text="Hi"))
    preferences = ModelPreferences(hints=[ModelHint(name="glm-4.6")], intelligence_priority=1)
    return Sample([message], max_tokens=10_000_000, system_prompt="Be brief.", model_preferences=preferences)


def ask_roots() -> ListRoots:
    return ListRoots()


def asking_server() -> MCPServer:
    """A server that asks by requests or in rounds, as its client's revision has it."""
    server = MCPServer("shop")

    @server.tool()
    async def order(address: Annotated[Address, Resolve(ask_city)]) -> str:
        """Ask for a form."""
        return f"to {address.city}"

    @server.tool()
    async def think(result: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
        """Ask for a completion."""
        return result.content.text if isinstance(result.content, TextContent) else ""

    @server.tool()
    async def look(result: Annotated[ListRootsResult, Resolve(ask_roots)]) -> str:
        """Ask for roots."""
        return " ".join(str(root.uri) for root in result.roots)

    return server


@asynccontextmanager
async def serving_upstream(*, modern: bool) -> AsyncIterator[str]:
    """Serves the server over HTTP; yields its URL. If not ``modern``, it does not know the stateless revisions."""
    async with serving(asking_server(), modern=modern) as url:
        yield url


@asynccontextmanager
async def serving(upstream: MCPServer, *, modern: bool = True) -> AsyncIterator[str]:
    """Serves any server, as ``serving_upstream``."""
    app: Any = upstream.streamable_http_app()

    async def legacy(scope: Any, receive: Any, send: Any) -> None:
        if dict(scope.get("headers", ())).get(b"mcp-protocol-version", b"").startswith(b"2026"):
            await send({"type": "http.response.start", "status": 400, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        else:
            await app(scope, receive, send)

    config = uvicorn.Config(app if modern else legacy, port=0, log_level="critical", lifespan="on", ws="none")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server._serve())  # without its signal handlers
    try:
        while not server.started:
            await asyncio.sleep(0.01)
        (socket,) = server.servers[0].sockets
        yield f"http://127.0.0.1:{socket.getsockname()[1]}/mcp"
    finally:
        server.should_exit = server.force_exit = True
        await serving
