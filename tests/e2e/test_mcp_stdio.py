"""``toold mcp`` as an editor starts it: its daemon, its end, and restarts."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types
import psutil
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from tests.daemon_environment import daemon_environment

pytestmark = pytest.mark.process

COMMAND = [sys.executable, "-m", "toold", "mcp"]
PARENT = """
import subprocess, sys
process = subprocess.Popen(sys.argv[1:])
print(process.pid, file=sys.stderr, flush=True)
process.wait()
"""
"""An editor whose child processes inherit its pipes."""
PATIENCE_S = 60.0

Env = dict[str, str]


@pytest.fixture
def env(tmp_path: Path) -> Iterator[Env]:
    """The environment of an editor; its daemon ends with the test."""
    state = tmp_path / "state"
    settings = {"TOOLD_PORT": "0", "TOOLD_HTTP_PORT": "0", "TOOLD_SIMULATE": "true", "TOOLD_TOOLSET": "full"}
    yield daemon_environment(state, **settings)
    try:
        daemon = psutil.Process(json.loads((state / "daemon.json").read_text())["pid"])
    except (OSError, psutil.NoSuchProcess):
        return
    daemon.kill()
    daemon.wait(20)


class Editor:
    """A raw editor that sends and receives lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    def send(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def call(self, request_id: int, name: str, **arguments: Any) -> None:
        self.send(id=request_id, method="tools/call", params={"name": name, "arguments": arguments})

    async def receive(self) -> dict[str, Any]:
        """The next line, which must be a message."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            message: dict[str, Any] = json.loads(await self.process.stdout.readline())
        assert message["jsonrpc"] == "2.0"
        return message

    async def initialize(self) -> dict[str, Any]:
        client = {"name": "e2e-editor", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        self.send(id=0, method="initialize", params=params)
        return await self.receive()


@asynccontextmanager
async def editor(env: Env, cwd: Path) -> AsyncIterator[Editor]:
    """An editor that has started ``toold mcp``."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*COMMAND, stdin=pipe, stdout=pipe, env=env, cwd=cwd, limit=2**24)
    try:
        yield Editor(process)
    finally:
        if process.returncode is None:
            process.kill()
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


def pid_of_daemon(env: Env) -> int:
    pid: int = json.loads((Path(env["TOOLD_STATE_DIR"]) / "daemon.json").read_text())["pid"]
    return pid


async def test_five_editors_share_one_daemon(env: Env, tmp_path: Path) -> None:
    """One daemon answers all five, and outlives them."""

    async def session() -> int:
        async with editor(env, tmp_path) as session:
            assert "result" in await session.initialize()
            session.call(1, "status")
            pid: int = (await session.receive())["result"]["structuredContent"]["pid"]
            session.process.stdin.close()  # type: ignore[union-attr] # it is a pipe
            assert await asyncio.wait_for(session.process.wait(), PATIENCE_S) == 0
            return pid

    assert len(set(await asyncio.gather(*(session() for _ in range(5))))) == 1
    assert psutil.Process(pid_of_daemon(env)).is_running()
    log = (Path(env["TOOLD_STATE_DIR"]) / "daemon.log").read_text()
    assert log.count("is ready.") == 1
    assert "cannot start" not in log


async def test_a_killed_daemon_is_replaced(env: Env, tmp_path: Path) -> None:
    """A running call returns: a read with its result, a write with its known outcome."""
    async with editor(env, tmp_path) as session:
        await session.initialize()
        first = pid_of_daemon(env)
        session.call(1, "echo", text="again", delay_ms=1500)
        session.call(2, "sim_effect", text="once", delay_ms=60_000)
        effect = Path(env["TOOLD_STATE_DIR"]) / "sim_effect.log"
        async with asyncio.timeout(PATIENCE_S):
            while not (effect.exists() and effect.read_text()):
                await asyncio.sleep(0.02)
        os.kill(first, signal.SIGKILL)
        answers = {answer["id"]: answer["result"] for answer in [await session.receive() for _ in range(2)]}
        assert answers[1]["content"][0]["text"] == "again"
        assert answers[2]["structuredContent"]["code"] == "OUTCOME_UNKNOWN"
        assert effect.read_text().split() == ["once"]
        assert pid_of_daemon(env) != first
        session.call(3, "echo", text="as ever")
        assert (await session.receive())["result"]["content"][0]["text"] == "as ever"


@pytest.mark.parametrize("way", ["stdin", "SIGTERM", "parent"])
async def test_process_ends_with_its_editor(env: Env, tmp_path: Path, way: str) -> None:
    """``toold mcp`` ends when the editor closes its end, sends a signal, or dies while other processes hold its pipes
    open.
    """
    pipe = asyncio.subprocess.PIPE
    read_end, write_end = os.pipe()
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PARENT, *COMMAND),
        stdin=read_end,
        stdout=pipe,
        stderr=pipe,
        env=env,
        cwd=tmp_path,
        limit=2**24,
    )
    os.close(read_end)
    assert parent.stdout is not None
    assert parent.stderr is not None
    bridge = psutil.Process(int(await parent.stderr.readline()))
    os.write(write_end, b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
    assert b'"echo"' in await asyncio.wait_for(parent.stdout.readuntil(b"\n"), PATIENCE_S)
    if way == "stdin":
        os.close(write_end)
    elif way == "SIGTERM":
        bridge.terminate()
    else:
        parent.kill()
    await asyncio.to_thread(psutil.wait_procs, [bridge], PATIENCE_S)
    assert not bridge.is_running()
    await parent.communicate()
    if way != "stdin":
        os.close(write_end)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_sdk_client(env: Env, tmp_path: Path, mode: Any) -> None:
    """The SDK's client connects in both modes, lists, calls, and gets errors as answers."""
    async with editor(env, tmp_path) as first:  # the client tries its preferred mode only for some seconds
        await first.initialize()
    server = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=env, cwd=tmp_path)
    async with Client(stdio_client(server), mode=mode) as client:
        assert client.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")
        assert "toolset 'full'" in (client.instructions or "")
        assert "chat" in {tool.name for tool in (await client.list_tools()).tools}
        reply = await client.call_tool("echo", {"text": "hi"})
        assert [block.text for block in reply.content if isinstance(block, mcp_types.TextContent)] == ["hi"]
        wrong = await client.call_tool("echo", {"txt": "hi"})
        assert wrong.is_error


def test_nothing_heavy_is_imported(env: Env) -> None:
    """The start imports neither the MCP SDK, nor the vendors' SDKs, nor the daemon."""
    program = "import sys, toold.cli.mcp_command; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert loaded.isdisjoint({"mcp", "mcp_types", "openai", "zhipuai", "pydantic", "httpx", "toold.daemon"})
