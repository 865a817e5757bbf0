"""A hand-written MCP server over HTTP with a tool that runs only as a task, in revision 2025-11-25."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.requests import Request
from starlette.types import Receive, Scope, Send
from toold.serving import HttpServer

Json = dict[str, Any]
ID = "task-1"
RESULT: Json = {"content": [{"type": "text", "text": "found"}], "_meta": {"x": 1}}


def task(status: str, message: str | None = None, **changed: Any) -> Json:
    """A task of this status."""
    at = "2026-11-27T12:00:00Z"
    fields = {"taskId": ID, "status": status, "createdAt": at, "lastUpdatedAt": at, "ttl": 60_000, "pollInterval": 50}
    return fields | ({} if message is None else {"statusMessage": message}) | changed


class TaskServer:
    """Answers the looks at its task with ``looks``, of which the last one stays."""

    def __init__(self) -> None:
        self.capability: Json | None = {"cancel": {}, "requests": {"tools": {"call": {}}}}
        self.created: Json = {"task": task("working")}
        self.looks: list[Json] = [task("completed")]
        self.result: Json = {"result": RESULT}
        self.asked: list[Json] = []
        self.looked = asyncio.Event()
        self.cancelled = asyncio.Event()

    def params_of(self, method: str) -> list[Json]:
        """The parameters of the requests with this method."""
        return [message["params"] for message in self.asked if message["method"] == method]

    def _answer(self, message: Json) -> Json:
        params = message.get("params", {})
        match message["method"]:
            case "initialize":
                capabilities: Json = {"tools": {}} | ({} if self.capability is None else {"tasks": self.capability})
                info = {"name": "researcher", "version": "1"}
                return {"result": {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}}
            case "tools/list":
                tool = {"name": "research", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}}
                return {"result": {"tools": [tool]}}
            case "tools/call":
                return {"result": self.created if "task" in params else RESULT}
            case "tasks/get":
                self.looked.set()
                return {"result": self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]}
            case "tasks/result":
                return self.result
            case "tasks/cancel":
                self.cancelled.set()
                return {"result": task("cancelled")}
            case _:
                return {"error": {"code": -32601, "message": "Method not found"}}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        message: Json = json.loads(await request.body()) if request.method == "POST" else {}
        status, body = 405, b""
        if request.headers.get("mcp-protocol-version", "").startswith("2026"):
            status = 400
        elif "id" in message and "method" in message:
            self.asked.append(message)
            answer = {"jsonrpc": "2.0", "id": message["id"], **self._answer(message)}
            status, body = 200, json.dumps(answer).encode()
        elif message:
            status = 202
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def serving_tasks() -> AsyncIterator[tuple[TaskServer, str]]:
    """Serve; yields the server and its URL."""
    server = TaskServer()
    http = HttpServer(server, "127.0.0.1", 0, "--tasks")
    await http.start()
    try:
        yield server, f"http://127.0.0.1:{http.port}/mcp"
    finally:
        await http.close()
