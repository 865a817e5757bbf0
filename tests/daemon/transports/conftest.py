"""A daemon on the test's event loop, with tools of the test, and raw WebSocket clients."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict
from toold.daemon.app import Daemon
from toold.daemon.lifecycle import running
from toold.protocol.tool_call import Annotations
from toold.tools import Tool, ToolContext, ToolRegistry
from websockets.asyncio.client import ClientConnection, connect

Frame = dict[str, Any]


class AnyArguments(BaseModel):
    """Accepts any arguments."""

    model_config = ConfigDict(extra="allow")


Function = Callable[[AnyArguments, ToolContext], Awaitable[Any]]


class Peer:
    """A raw connection that sends and receives frames as dicts."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.ack: Frame = {}

    async def send(self, op: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"op": op, **fields}))

    async def receive(self) -> Frame:
        async with asyncio.timeout(20):
            frame: Frame = json.loads(await self.socket.recv())
            return frame

    async def until_answered(self, request_id: object) -> list[Frame]:
        """Returns all frames up to this call's answer, the answer last."""
        frames = [await self.receive()]
        while (frames[-1]["op"], frames[-1].get("request_id")) != ("call_tool_res", request_id):
            frames.append(await self.receive())
        return frames


@pytest.fixture(scope="session")
def make_tool() -> Callable[..., Tool]:
    """Returns a function that makes a tool of one function."""

    def make(name: str, function: Function, *, read_only: bool = True) -> Tool:
        annotations = Annotations(read_only, False, False, False)
        return Tool(name, f"The tool {name} of a test.", AnyArguments, function, annotations)

    return make


@pytest.fixture
async def serve(settings_with: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[..., Any]]:
    """``await serve(*tools, **environment)``: a running daemon without SDKs; stopped after the test."""
    quick = {
        "TOOLD_SIMULATE": "true",
        "TOOLD_KIMI_SDK": "http",
        "TOOLD_GLM_SDK": "http",
        "TOOLD_AUTH": "false",
        "TOOLD_GRACE_PERIOD_S": "0.1",
    }
    async with AsyncExitStack() as stack:

        async def start(*tools: Tool, **env: str) -> Daemon:
            monkeypatch.setattr("toold.daemon.lifecycle.load_registry", lambda *_, **__: ToolRegistry(tools))
            return await stack.enter_async_context(running(settings_with(**quick | env)))

        yield start


@pytest.fixture
async def join(request: pytest.FixtureRequest) -> AsyncIterator[Callable[..., Any]]:
    """``await join(daemon, **hello)``: a client with an accepted hello; closed before the daemon stops."""
    request.getfixturevalue("serve")
    async with AsyncExitStack() as stack:

        async def enter(daemon: Daemon, **hello: Any) -> Peer:
            url = f"ws://127.0.0.1:{daemon.websocket.port}/"
            peer = Peer(await stack.enter_async_context(connect(url, compression=None, max_size=None)))
            await peer.send("hello", **hello)
            peer.ack = await peer.receive()
            assert peer.ack["ok"]
            return peer

        yield enter
