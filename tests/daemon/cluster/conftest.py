"""Nodes of a cluster in the test's process, and a client that speaks frames."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from tests.daemon.app_requests import NO_SDKS
from toold.daemon import lifecycle
from toold.daemon.app import Daemon
from toold.daemon.cluster import peer_client
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from toold.daemon.store_opening import open_store
from toold.store import Store
from toold.tools import Tool
from websockets.asyncio.client import ClientConnection, connect

from .memory_cluster import MemoryCluster, MemoryNode

TOKEN = "a-token-of-all-nodes"

StartNode = Callable[..., Awaitable[Daemon]]


@pytest.fixture
async def start_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StartNode]:
    """``await start_node("a", *tools, **environment)``: a node of one cluster, without SDKs."""
    cluster = MemoryCluster()
    async with AsyncExitStack() as stack:

        async def start(name: str, *tools: Tool, **env: str) -> Daemon:
            def open_shared(*arguments: Any) -> Store:
                store = open_store(*arguments)
                node = MemoryNode(cluster, f"{name}0", name)
                node.share_sessions(store)
                store.cluster = node  # type: ignore[misc]
                return store

            monkeypatch.setattr(lifecycle, "open_store", open_shared)
            monkeypatch.setattr(lifecycle, "secrets", SimpleNamespace(token_hex=lambda _: f"{name}0"))
            given = {
                "TOOLD_PORT": "0",
                "TOOLD_HTTP_PORT": "0",
                "TOOLD_STATE_DIR": str(tmp_path / name),
                "TOOLD_TOKEN": TOKEN,
                "TOOLD_NODE_NAME": name,
                "TOOLD_CLUSTER_SECRET": "a-secret-of-all-nodes",
                "TOOLD_SIMULATE": "true",
                **NO_SDKS,
            }
            settings = load_settings({}, env=given | env, cwd=tmp_path)
            return await stack.enter_async_context(running(settings, tools))

        yield start


class FrameClient:
    """One connection of a client that can resume."""

    def __init__(self, socket: ClientConnection, ack: dict[str, Any]) -> None:
        self.socket = socket
        self.ack = ack

    async def send(self, op: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"op": op, **fields}))

    async def receive(self) -> dict[str, Any]:
        frame: dict[str, Any] = json.loads(await self.socket.recv())
        return frame

    async def call(self, request_id: str, name: str, **arguments: Any) -> dict[str, Any]:
        """The answer of a call."""
        await self.send("call_tool", request_id=request_id, name=name, arguments=arguments)
        return await self.answer()

    async def answer(self) -> dict[str, Any]:
        """The next answer of a call."""
        while (frame := await self.receive())["op"] != "call_tool_res":
            pass
        return frame


@pytest.fixture
async def greet() -> AsyncIterator[Callable[..., Awaitable[FrameClient]]]:
    """``await greet(daemon, resume=…)``: a connection after its hello."""
    async with AsyncExitStack() as stack:

        async def connected(daemon: Daemon, *, headers: dict[str, str] | None = None, **fields: Any) -> FrameClient:
            socket = await stack.enter_async_context(
                connect(daemon.address().url, compression=None, additional_headers=headers or {}, max_size=None)
            )
            hello = {"op": "hello", "token": TOKEN, "features": ["resume", "stream"], **fields}
            await socket.send(json.dumps(hello))
            return FrameClient(socket, json.loads(await socket.recv()))

        yield connected


def node_of(daemon: Daemon) -> MemoryNode:
    """The row of a daemon that the test may change."""
    assert daemon.cluster is not None
    assert isinstance(daemon.cluster.store, MemoryNode)
    return daemon.cluster.store


Greet = Callable[..., Awaitable[FrameClient]]
FOREVER_MS = 600_000


@pytest.fixture
async def nodes(start_node: StartNode) -> tuple[Daemon, Daemon]:
    """Two nodes that know each other."""
    pair = await start_node("a"), await start_node("b")
    for node in pair:
        assert node.cluster is not None
        await node.cluster.membership.refresh()
    return pair


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False, timeout=30) as client:
        yield client


async def running_call(daemon: Daemon, greet: Greet) -> tuple[FrameClient, str]:
    """A client whose call runs at this node until it is cancelled, and the id of the call."""
    client = await greet(daemon)
    await client.send("call_tool", request_id="1", name="echo", arguments={"text": "hi", "delay_ms": FOREVER_MS})
    async with asyncio.timeout(30):
        while not (calls := list(daemon.router.calls)):
            await asyncio.sleep(0.01)
    return client, calls[0].id


@pytest.fixture
def silent_port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A port that accepts connections and never answers, as one of a process that is stopped. Nodes that start after
    it wait only shortly.
    """
    monkeypatch.setattr(peer_client, "ANSWER_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def make_silent(node: Daemon, port: int, *, seen_by: Daemon) -> None:
    """Lets ``node`` have the address of a port that does not answer, as ``seen_by`` has it."""
    node_of(node).address = node_of(node).address.replace(str(node.http.port), str(port))
    assert seen_by.cluster is not None
    await seen_by.cluster.membership.refresh()
