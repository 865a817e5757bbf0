"""A hand-written MCP server over HTTP that answers each method as a test wants. An SDK would refuse to."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.requests import Request
from starlette.types import Receive, Scope, Send
from toold.serving import HttpServer

Json = dict[str, Any]
Lie = Callable[[Json], "Json | AsyncIterator[bytes]"]
"""Makes the message that answers a request, or the bytes of the body."""

INFO: Json = {
    "protocolVersion": "2025-11-25",
    "capabilities": {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {"listChanged": True},
        "completions": {},
    },
    "serverInfo": {"name": "liar", "version": "1"},
}
TRUTH: dict[str, Json] = {
    "initialize": INFO,
    "tools/list": {"tools": [{"name": "swear", "description": "Swear.", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "true"}]},
    "resources/list": {"resources": [{"uri": "liar://a", "name": "a"}]},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/read": {"contents": [{"uri": "liar://a", "text": "true"}]},
    "resources/subscribe": {},
    "prompts/list": {"prompts": [{"name": "oath", "description": "An oath.", "arguments": [{"name": "word"}]}]},
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "true"}}]},
    "completion/complete": {"completion": {"values": ["true"]}},
}


class LyingServer:
    """Answers truly, except where ``lies`` says otherwise. ``asked`` has the methods."""

    def __init__(self) -> None:
        self.lies: dict[str, Lie] = {}
        self.asked: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.method != "POST":
            await _answer(send, 405, b"")
            return
        message: Json = json.loads(await request.body())
        method = message.get("method", "")
        self.asked.append(method)
        if request.headers.get("mcp-protocol-version", "").startswith("2026"):
            await _answer(send, 400, b"")
        elif "id" not in message or not method:
            await _answer(send, 202, b"")
        elif method not in TRUTH:
            error = {"code": -32601, "message": "Method not found"}
            await _answer(send, 200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())
        else:
            lie = self.lies.get(method)
            body = answer(message, TRUTH[method]) if lie is None else lie(message)
            if isinstance(body, dict):
                await _answer(send, 200, json.dumps(body).encode())
            else:
                await self._stream(body, send)

    async def _stream(self, parts: AsyncIterator[bytes], send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        async for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b""})


def answer(request: Json, result: Json) -> Json:
    """The message of a result."""
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


def lying(result: Json) -> Lie:
    """Answers with this result."""
    return lambda request: answer(request, result)


async def _answer(send: Send, status: int, body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def serving_lies() -> AsyncIterator[tuple[LyingServer, str]]:
    """Serve; yields the server and its URL."""
    server = LyingServer()
    http = HttpServer(server, "127.0.0.1", 0, "--liar")
    await http.start()
    try:
        yield server, f"http://127.0.0.1:{http.port}/mcp"
    finally:
        await http.close()
