"""Published MCP servers, directly and as sources of a daemon: the official SDK's client gets the same from both."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
import pytest_asyncio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from tests.chaos.daemon import Daemon
from tests.peers.conftest import PEERS, require
from tests.peers.real_servers import RealServer, real_servers, reset, settings_of
from tests.peers.recorded_sessions import differences, recorded
from tests.peers.test_peers import PROGRAMS
from toold.sources.program_process import environment

# Six servers of four packages are installed for these tests, so only `make test-peers` runs them.
pytestmark = [pytest.mark.process, pytest.mark.large_peer, pytest.mark.asyncio(loop_scope="module")]

WAYS = pytest.mark.parametrize(
    ("way", "mode"),
    [("http", "2026-07-28"), ("http", "legacy"), ("stdio", "2026-07-28"), ("stdio", "legacy")],
)
EACH_WAY = pytest.mark.parametrize("way", ["http", "stdio"])
MODES = pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
START_S = 60.0


@dataclass
class World:
    """A daemon with all servers as sources."""

    directory: Path
    servers: list[RealServer]
    daemon: Daemon

    @asynccontextmanager
    async def through(self, way: str, mode: str, **callbacks: Any) -> AsyncIterator[Client]:
        """A client of the daemon, which ``initialize``s in the mode ``legacy``."""
        transport: Any = f"http://127.0.0.1:{self.daemon.http_port}/mcp/full"
        if way == "stdio":
            command = [sys.executable, "-m", "toold", "mcp", "--toolset", "full"]
            transport = stdio_client(_program(command, self.daemon.env))
        async with Client(transport, mode=mode, cache=None, **callbacks) as client:
            yield client

    @asynccontextmanager
    async def direct(self, server: RealServer, mode: str, **callbacks: Any) -> AsyncIterator[Client]:
        """A client of a separate server, in the newest revision that the server speaks if not ``legacy``."""
        program = _program(server.command, environment(server.env))
        async with Client(
            stdio_client(program), mode="legacy" if mode == "legacy" else "auto", cache=None, **callbacks
        ) as client:
            yield client


def _program(command: list[str], env: dict[str, str]) -> StdioServerParameters:
    return StdioServerParameters(command=command[0], args=command[1:], env=env)


async def _unasked(*_: Any) -> Any:
    raise AssertionError("no step asks")


async def _no_roots(_: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[])


UNASKED: dict[str, Any] = {
    "elicitation_callback": _unasked,
    "sampling_callback": _unasked,
    "list_roots_callback": _no_roots,
}
"""Some servers have tools only for clients that answer questions."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(starts_processes: None, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    for peer in ("servers", "sqlite", "node-servers"):
        require(peer)
    directory = tmp_path_factory.mktemp("servers")
    servers = real_servers(directory)
    for server in servers:
        reset(directory, server.name)
    config = directory / "toold.toml"
    config.write_text(settings_of(servers))
    daemon = Daemon(directory, {"TOOLD_AUTH": "false", "TOOLD_CONFIG": str(config)})
    await daemon.start()
    try:
        world = World(directory, servers, daemon)
        await _connected(world)
        yield world
    finally:
        await daemon.close()


async def _connected(world: World) -> None:
    async with asyncio.timeout(START_S), world.through("http", "legacy") as client:
        while True:
            listed = {tool.name.partition("_")[0] for tool in (await client.list_tools()).tools}
            if listed >= {server.name for server in world.servers}:
                return
            await asyncio.sleep(0.1)


@WAYS
async def test_a_session_through_the_daemon_equals_a_direct_one(world: World, way: str, mode: str) -> None:
    """Each list, call, resource, prompt and completion, field by field; docs/mcp.md lists what differs."""
    found = []
    async with world.through(way, mode, **UNASKED) as client:
        for server in world.servers:
            reset(world.directory, server.name)
            async with world.direct(server, mode, **UNASKED) as alone:
                direct = await recorded(alone, server, world.directory)
            reset(world.directory, server.name)
            through = await recorded(client, server, world.directory, prefix=f"{server.name}_")
            found += differences(server, direct, through)
    assert not found, "\n".join(found)


@EACH_WAY
@MODES
async def test_questions_of_a_server_reach_the_client(world: World, way: str, mode: str) -> None:
    """Forms and completions, asked by a server that speaks 2025-11-25, of a client of either revision."""
    asked: dict[str, Any] = {}

    async def fill_in(_: Any, params: Any) -> types.ElicitResult:
        asked["form"] = params
        return types.ElicitResult(action="accept", content={"name": "Ann", "integer": 7})

    async def complete_text(_: Any, params: Any) -> types.CreateMessageResult:
        asked["prompt"] = params
        content = types.TextContent(type="text", text="It is blue.")
        return types.CreateMessageResult(role="assistant", content=content, model="fake-1")

    async def list_roots(_: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri="file:///srv/work", name="work")])

    callbacks: dict[str, Any] = {"elicitation_callback": fill_in, "sampling_callback": complete_text}
    async with world.through(way, mode, **callbacks, list_roots_callback=list_roots) as client:
        filled = _text(await client.call_tool("everything_trigger-elicitation-request", {}))
        assert asked["form"].message.startswith("everything asks: ")
        assert "Name: Ann" in filled
        assert "Favorite Integer: 7" in filled
        sampled = _text(await client.call_tool("everything_trigger-sampling-request", {"prompt": "Sky?"}))
        assert "Sky?" in asked["prompt"].messages[0].content.text
        assert "It is blue." in sampled
        assert "fake-1" in sampled
        # This server asks for roots when its session begins, which all clients share: no client's roots are for that.
        roots = _text(await client.call_tool("everything_get-roots-list", {}))
        assert "no roots are currently configured" in roots


@EACH_WAY
@MODES
async def test_a_client_without_answers_learns_why(world: World, way: str, mode: str) -> None:
    """The server gets an error for its question, and the client the reason."""
    async with world.through(way, mode) as client:
        reply = await client.call_tool("everything_trigger-sampling-request", {"prompt": "Sky?"})
        assert reply.is_error
        assert "has not declared that it can ask a model" in _text(reply)


@EACH_WAY
@MODES
async def test_progress_reaches_the_client(world: World, way: str, mode: str) -> None:
    """In its order, with the server's numbers."""
    seen: list[tuple[float, float | None]] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total))

    async with world.through(way, mode) as client:
        arguments = {"duration": 0.3, "steps": 3}
        reply = await client.call_tool(
            "everything_trigger-long-running-operation", arguments, progress_callback=progressed
        )
    assert "Duration: 0.3 seconds, Steps: 3" in _text(reply)
    assert seen == sorted(seen)
    assert set(seen) <= {(1.0, 3.0), (2.0, 3.0), (3.0, 3.0)}
    assert seen


@EACH_WAY
@MODES
async def test_a_tool_that_runs_as_a_task(world: World, way: str, mode: str) -> None:
    """The client calls it like any other: the daemon awaits the task, and passes on its messages and its question."""
    seen: list[str | None] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        seen.append(message)

    async def choose(_: Any, params: Any) -> types.ElicitResult:
        assert "multiple interpretations" in params.message
        return types.ElicitResult(action="accept", content={"interpretation": "snake"})

    async with world.through(way, mode, elicitation_callback=choose) as client:
        arguments = {"topic": "python", "ambiguous": True}
        reply = await client.call_tool("everything_simulate-research-query", arguments, progress_callback=progressed)
    assert not reply.is_error, _text(reply)
    assert "# Research Report: python (snake)" in _text(reply)
    stages = {f"{stage}..." for stage in ("Gathering sources", "Analyzing content", "Generating report")}
    assert stages & set(seen)  # a client gets the latest message of the moment


DATA: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "everything": [("get-structured-content", {"location": "New York"}), ("get-sum", {"a": 1, "b": 2})],
    "filesystem": [("list_allowed_directories", {}), ("read_text_file", {"path": "/nothing"})],
    "memory": [("read_graph", {})],
    "time": [("convert_time", {"source_timezone": "UTC", "time": "16:30", "target_timezone": "Asia/Kathmandu"})],
}


async def test_fastmcp_makes_the_same_data(world: World) -> None:
    """Its client builds objects by a tool's output schema, from the structured content."""
    require("fastmcp")
    direct = [
        {"command": server.command, "env": environment(server.env), "calls": DATA[server.name]}
        for server in world.servers
        if server.name in DATA
    ]
    url = f"http://127.0.0.1:{world.daemon.http_port}/mcp/full"
    through = [
        {"url": url, "calls": [(f"{name}_{tool}", given) for tool, given in calls]} for name, calls in DATA.items()
    ]
    command = [str(PEERS / "fastmcp/bin/python"), str(PROGRAMS / "fastmcp_real.py"), json.dumps([*direct, *through])]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    found = json.loads(output)
    assert found[: len(direct)] == found[len(direct) :]
    kinds = [kind for answers in found for kind, *_ in answers]
    assert "NoneType" in kinds
    assert set(kinds) != {"NoneType"}


def _text(reply: types.CallToolResult) -> str:
    return "\n".join(block.text for block in reply.content if isinstance(block, types.TextContent))
