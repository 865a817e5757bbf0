"""A remote agent whose answers the test scripts, over JSON-RPC and HTTP+JSON."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from toold.serving import HttpServer

Params = dict[str, Any]
Answering = Callable[[str, Params], Awaitable[Any]]


def task(state: str, *, text: str = "", answer: Sequence[Any] = (), task_id: str = "t1") -> Params:
    """A task of A2A 1.0."""
    status: Params = {"state": f"TASK_STATE_{state}", "timestamp": "2026-11-23T00:00:00Z"}
    if text:
        status["message"] = {"messageId": f"m-{text}", "role": "ROLE_AGENT", "parts": [{"text": text}]}
    artifacts = {"artifacts": [{"artifactId": "a", "parts": list(answer)}]} if answer else {}
    return {"id": task_id, "contextId": "c1", "status": status, **artifacts}


def old_task(state: str, text: str = "") -> Params:
    """A task of A2A 0.3."""
    artifacts = {"artifacts": [{"artifactId": "a", "parts": [{"kind": "text", "text": text}]}]} if text else {}
    return {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": state}, **artifacts}


def events(*bodies: Any, then_break: bool = False) -> Response:
    """A stream of JSON-RPC results, whose connection may break after them."""

    async def sent() -> AsyncIterator[bytes]:
        for body in bodies:
            yield b"data: " + json.dumps({"jsonrpc": "2.0", "id": 1, "result": body}).encode() + b"\n\n"
        if then_break:
            raise ConnectionError

    return StreamingResponse(sent(), media_type="text/event-stream")


@dataclass
class ScriptedAgent:
    """Answers each method with what ``answers`` has for it: a value, a response, or a function of the parameters."""

    port: int = 0
    answers: dict[str, Any] = field(default_factory=dict)
    received: list[tuple[str, Params]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    card: Params = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def methods(self) -> list[str]:
        return [method for method, _ in self.received]

    def reset(self, **answers: Any) -> None:
        """Forgets what it received, and answers methods with these."""
        self.answers = answers
        self.received.clear()
        self.headers.clear()

    async def answer(self, request: Request) -> Response:
        path = request.url.path
        if path.endswith("agent-card.json"):
            return JSONResponse(self.card_of(path.split("/")[1]))
        self.headers.append(dict(request.headers))
        if path.startswith("/rest"):
            method, params = path.removeprefix("/rest/"), {}
            if request.method == "POST":
                params = await request.json()
        else:
            body = await request.json()
            method, params = body["method"], body["params"]
        self.received.append((method, params))
        found = self.answers[method]
        if callable(found) and not isinstance(found, Response):
            found = await found(params)
        if isinstance(found, Response):
            return found
        rest = path.startswith("/rest")
        return JSONResponse(found if rest else {"jsonrpc": "2.0", "id": 1, "result": found})

    def card_of(self, name: str) -> Params:
        """The card at ``/NAME/.well-known/agent-card.json``."""
        skills = [{"id": "search", "name": "Search", "description": "Searches."}, {"id": "write", "name": "Write"}]
        common = {"name": name, "description": f"The agent {name}.", "version": "1", "skills": skills}
        if name == "old":
            return {**common, "protocolVersion": "0.3.0", "url": f"{self.url}/old", "preferredTransport": "JSONRPC"}
        binding = "HTTP+JSON" if name == "rest" else "JSONRPC"
        interface = {"url": f"{self.url}/{name}", "protocolBinding": binding, "protocolVersion": "1.0"}
        streaming = {"capabilities": {"streaming": name == "live"}}
        return {**common, "supportedInterfaces": [interface], **streaming, **self.card}


@asynccontextmanager
async def scripted_agent() -> AsyncIterator[ScriptedAgent]:
    """A running agent."""
    agent = ScriptedAgent()
    routes = [Route("/{path:path}", agent.answer, methods=["GET", "POST"])]
    server = HttpServer(Starlette(routes=routes), "127.0.0.1", 0, "--agent")
    await server.start()
    agent.port = server.port
    try:
        yield agent
    finally:
        await server.close()
