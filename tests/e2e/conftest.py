"""Fixtures: the daemon as a process, a user's package of misbehaving tools, and raw WebSocket peers."""

import asyncio
import json
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.daemon_environment import daemon_environment
from tests.e2e.mcp_callers import McpCaller, over_http, over_stdio
from tests.forked_daemons import ForkedProcess, fork_toold
from websockets.asyncio.client import ClientConnection, connect

BAD_TOOLS = '''
import asyncio, sys, time
from toold.protocol.tool_call import ImageContent
from toold.tools import Arguments, ToolOutput, tool

class Nothing(Arguments):
    """No arguments."""

class Seconds(Arguments):
    """How long."""
    seconds: float = 60.0

@tool("bad_raises", read_only=True, open_world=False)
async def bad_raises(arguments: Nothing, context):
    """Raises."""
    raise ValueError("this tool is broken")

@tool("bad_exits", read_only=True, open_world=False)
async def bad_exits(arguments: Nothing, context):
    """Tries to end the daemon."""
    sys.exit(3)

@tool("bad_hangs", read_only=True, open_world=False)
async def bad_hangs(arguments: Seconds, context):
    """Hangs."""
    await asyncio.sleep(arguments.seconds)
    return "woke up"

@tool("bad_ignores_cancel", read_only=True, open_world=False)
async def bad_ignores_cancel(arguments: Seconds, context):
    """Swallows its cancellation, for some seconds."""
    end = time.monotonic() + arguments.seconds
    while time.monotonic() < end:
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            pass
    return "at last"

@tool("bad_blocks", read_only=True, open_world=False)
async def bad_blocks(arguments: Seconds, context):
    """Blocks the loop."""
    time.sleep(arguments.seconds)
    return "unblocked"

@tool("bad_returns", read_only=True, open_world=False)
async def bad_returns(arguments: Nothing, context):
    """Returns what is no JSON."""
    return {"lock": object()}

@tool("bad_floods", read_only=True, open_world=False)
async def bad_floods(arguments: Nothing, context):
    """Returns more than a frame takes."""
    return "x" * (21 * 1024 * 1024)

class What(Arguments):
    """What to stream."""
    kind: str

@tool("bad_streams", read_only=True, open_world=False)
async def bad_streams(arguments: What, context):
    """Reports what cannot be sent."""
    if arguments.kind == "number":
        context.stream(123)
    if arguments.kind == "progress":
        context.progress(object())
    if arguments.kind == "surrogate":
        context.progress("\\ud800", float("inf"), 1)
        context.stream("\\ud800")
    if arguments.kind == "flood":
        for _ in range(3):
            context.stream("x" * 1_000_000)
    return "ok"

class _Mute(Exception):
    def __str__(self):
        raise RuntimeError("no text")

@tool("draws", read_only=True, open_world=False)
async def draws(arguments: Nothing, context):
    """Returns a picture."""
    return ToolOutput("a picture", blocks=(ImageContent("iVBORw==", "image/png"),))

@tool("bad_error", read_only=True, open_world=False)
async def bad_error(arguments: Nothing, context):
    """Raises what has no text."""
    raise _Mute

@tool("write_hangs", read_only=False, open_world=False)
async def write_hangs(arguments: Seconds, context):
    """A write that hangs."""
    context.progress("begun")
    await asyncio.sleep(arguments.seconds)
    return "written"

@tool("reports", read_only=True, open_world=False)
async def reports(arguments: Nothing, context):
    """Reports progress and streams."""
    context.progress("half", 1, 2)
    await asyncio.sleep(0)
    context.stream("one ")
    context.stream("two")
    return "one two"
'''


@dataclass
class Process:
    """A running daemon, with its files and addresses."""

    process: ForkedProcess
    state: Path
    log: Path
    port: int
    http_port: int
    token: str
    env: dict[str, str]

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/"

    def stop(self) -> int:
        """Send SIGTERM. Returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)

    def logged(self) -> str:
        return self.log.read_text()

    def tracebacks(self) -> list[str]:
        """The log lines with a traceback, except those of the tools that fail on purpose."""
        lines = self.logged().splitlines()
        return [line for line in lines if "Traceback" in line and '"event": "tool failed"' not in line]

    @asynccontextmanager
    async def peer(self, **hello: Any) -> AsyncIterator["Peer"]:
        """A connection after a valid hello with these fields."""
        async with connect(self.url, compression=None, max_size=None) as socket:
            peer = Peer(socket)
            await peer.send(op="hello", **{"session_id": "e2e-test", "token": self.token, **hello})
            peer.ack = await peer.receive()
            assert peer.ack["ok"], peer.ack
            yield peer


class Peer:
    """A raw connection that sends and receives frames as dicts."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.ack: dict[str, Any] = {}

    async def send(self, **frame: Any) -> None:
        await self.socket.send(json.dumps(frame))

    async def receive(self, timeout_s: float = 20) -> dict[str, Any]:
        async with asyncio.timeout(timeout_s):
            frame: dict[str, Any] = json.loads(await self.socket.recv())
            return frame

    async def until(self, op: str, request_id: object = None) -> dict[str, Any]:
        """Returns the next frame with this op (and request id), and skips others."""
        while True:
            frame = await self.receive()
            if frame["op"] == op and (request_id is None or frame.get("request_id") == request_id):
                return frame

    async def call(self, request_id: object, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and wait for its answer."""
        await self.send(op="call_tool", request_id=request_id, name=name, arguments=arguments)
        return await self.until("call_tool_res", request_id)

    async def answers(self, *calls: tuple[str, dict[str, Any]], timeout_ms: int | None = None) -> list[dict[str, Any]]:
        """Call tools concurrently. Returns the answers in the order of the calls."""
        ids = [uuid4().hex for _ in calls]
        limit = {} if timeout_ms is None else {"timeout_ms": timeout_ms}
        for request_id, (name, arguments) in zip(ids, calls, strict=True):
            await self.send(op="call_tool", request_id=request_id, name=name, arguments=arguments, **limit)
        result: dict[str, dict[str, Any]] = {}
        while len(result) < len(ids):
            frame = await self.until("call_tool_res")
            result[frame["request_id"]] = frame
        return [result[request_id] for request_id in ids]

    async def status(self, **arguments: Any) -> dict[str, Any]:
        """The current result of ``status``, under a new id, since an earlier id would be replayed."""
        state: dict[str, Any] = (await self.call(uuid4().hex, "status", **arguments))["structured"]
        return state


def start(directory: Path, *flags: str, simulate: bool = True, **settings: str) -> Process:
    """Start a daemon on free ports in a separate directory, by default simulated, and wait until it listens."""
    state, log = directory / "state", directory / "daemon.log"
    env = daemon_environment(state, **settings)
    packages = directory / "packages"
    if not packages.exists():
        info = packages / "bad_tools-1.0.dist-info"
        info.mkdir(parents=True)
        (packages / "bad_tools.py").write_text(BAD_TOOLS)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bad-tools\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[toold.tools]\nbad = bad_tools\n")
    env["PYTHONPATH"] = str(packages)
    flags = (*(["--simulate"] if simulate else []), "--port", "0", "--http-port", "0", *flags)
    process = fork_toold(["serve", *flags], env=env, cwd=directory, stdout=log)
    address = _address(process, state, log)
    token_file = state / "token"
    token = env.get("TOOLD_TOKEN") or (token_file.read_text().strip() if token_file.exists() else "")
    return Process(process, state, log, address["port"], address["http_port"], token, env)


def _address(process: ForkedProcess, state: Path, log: Path) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"the daemon ended with {process.returncode} at its start:\n{log.read_text()}")
        try:
            address: dict[str, Any] = json.loads((state / "daemon.json").read_text())
        except (OSError, ValueError):
            address = {}
        if address.get("pid") == process.pid:  # not the file of an earlier daemon
            return address
        time.sleep(0.02)
    process.kill()
    pytest.fail(f"the daemon did not listen within 60 s:\n{log.read_text()}")


@pytest.fixture(scope="session")
def daemon(starts_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """One daemon per xdist worker, with the vendors' SDKs; it must stop cleanly and log no traceback."""
    running = start(tmp_path_factory.mktemp("daemon"), TOOLD_WARM_UP="true")
    yield running
    assert running.stop() == 0, running.logged()
    assert not running.tracebacks()


@pytest.fixture
def start_daemon(starts_processes: None, tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Starts daemons with these flags and settings; those still running at the end are killed."""
    started: list[Process] = []

    def begin(*flags: str, simulate: bool = True, **settings: str) -> Process:
        started.append(start(tmp_path, *flags, simulate=simulate, **settings))
        return started[-1]

    yield begin
    for running in started:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait()


TRANSPORTS = ("websocket", "mcp over http", "mcp over stdio")
Caller = Peer | McpCaller


def connect_by(transport: str, daemon: Process) -> AbstractAsyncContextManager[Caller]:
    """A caller over this transport; all return answers in the form of ``call_tool_res``."""
    if transport == "websocket":
        return daemon.peer(features=["ack"])
    if transport == "mcp over http":
        return over_http(f"http://127.0.0.1:{daemon.http_port}/mcp", daemon.token)
    return over_stdio(daemon.env, daemon.state.parent)


@pytest.fixture
def by() -> Callable[[str, Process], AbstractAsyncContextManager[Caller]]:
    """Connects over a transport."""
    return connect_by


@pytest.fixture(params=TRANSPORTS)
async def caller(request: pytest.FixtureRequest, daemon: Process) -> AsyncIterator[Caller]:
    """A caller over each transport, for the promises about all calls."""
    async with connect_by(request.param, daemon) as connected:
        yield connected


@pytest.fixture
async def peer(daemon: Process) -> AsyncIterator[Peer]:
    """A connection with all features."""
    async with daemon.peer(features=["ack", "stream"]) as connected:
        yield connected


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(starts_processes: None, tmp_path: Path) -> Command:
    """Runs a ``toold`` command that finds only the daemon of this state directory and these settings."""

    def run(
        *arguments: str, state: Path | None = None, stdin: str = "", **settings: str
    ) -> subprocess.CompletedProcess[str]:
        given, stdout, stderr = (tmp_path / f"command.{name}" for name in ("stdin", "stdout", "stderr"))
        given.write_text(stdin)
        env = daemon_environment(state or tmp_path / "state", **settings)
        process = fork_toold(arguments, env=env, cwd=tmp_path, stdin=given, stdout=stdout, stderr=stderr)
        code = process.wait(timeout=60)
        return subprocess.CompletedProcess(arguments, code, stdout.read_text(), stderr.read_text())

    return run


PeerFactory = Callable[..., AbstractAsyncContextManager[Peer]]


@pytest.fixture
def make_peer(daemon: Process) -> PeerFactory:
    """Opens further connections to the same daemon."""
    return daemon.peer
