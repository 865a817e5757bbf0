"""A hook at an HTTP address, whose answers a test writes."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.types import Receive, Scope, Send

Reply = dict[str, Any] | bytes | int
"""A JSON object, the bytes of a body, or a status without a body."""


class ScriptedHook:
    """Answers each question with what ``reply`` returns for it."""

    def __init__(self) -> None:
        self.url = ""
        self.reply: Callable[[dict[str, Any]], Reply] = lambda _: {}
        self.questions: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.connections: set[Any] = set()
        self.held: asyncio.Event | None = None
        """If set, answers wait for it."""

    def settings(self, **more: Any) -> dict[str, Any]:
        """The table of the hook."""
        return {"url": self.url, "allow_private": True, **more}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        self.questions.append(json.loads(body))
        self.headers.append({name.decode(): value.decode() for name, value in scope["headers"]})
        self.connections.add(tuple(scope["client"]))
        if self.held is not None:
            await self.held.wait()
        reply = self.reply(self.questions[-1])
        status = reply if isinstance(reply, int) else 200
        content = b"" if isinstance(reply, int) else reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})


@asynccontextmanager
async def scripted_hook() -> AsyncIterator[ScriptedHook]:
    """Serves over HTTP."""
    hook = ScriptedHook()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(hook, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve([listener]))
        hook.url = f"http://127.0.0.1:{listener.getsockname()[1]}/hook"
        try:
            yield hook
        finally:
            if hook.held is not None:
                hook.held.set()
            server.should_exit = True
            await task
