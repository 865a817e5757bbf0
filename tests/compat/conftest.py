"""One daemon with simulated vendors for all calls of the old clients, and these clients."""

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest
import pytest_asyncio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from tests.compat.exai_calls import DOT
from tests.compat.old_calls import OldCall, filled
from tests.daemon_environment import daemon_environment
from tests.simulated_daemon import TOKEN, simulated_environment
from toold.client import MCPWebSocketClient
from toold.daemon import load_settings
from toold.daemon.lifecycle import running
from toold.providers.simulator import Simulator
from websockets.asyncio.client import ClientConnection, connect

AT_ONCE = 8
"""Calls in flight."""
CONFIG = """
[clink.gemini]
command = ["/bin/sh", "-c", "cat > /dev/null; echo '{\\"response\\": \\"It keeps books.\\"}'"]
output = "gemini"
"""
"""A subagent, for ``clink``."""
SHELF = "class Shelf:\n    def add(self, book):\n        self.books.append(book)\n"


class OldAnswer(NamedTuple):
    """What a client got."""

    error: dict[str, Any] | None
    texts: tuple[str, ...]
    structured: Any
    metadata: dict[str, Any]

    @property
    def argument_notices(self) -> tuple[str, ...]:
        """What was changed in the arguments."""
        return tuple(self.metadata.get("argument_notices", ()))

    @property
    def notices(self) -> tuple[str, ...]:
        """What the answer says about the arguments, and how it was made."""
        own = self.structured.get("notice") if isinstance(self.structured, dict) else None
        return (*self.argument_notices, *([own] if isinstance(own, str) else ()))


class OldClient(Protocol):
    """A client that sends an old call and waits for its answer."""

    async def call(self, tool: str, arguments: dict[str, Any]) -> OldAnswer: ...


class WebSocketClient:
    """A client of EX-AI-MCP-Server: hello with a label and a token, ``call_tool``, and every other frame is skipped."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}

    async def call(self, tool: str, arguments: dict[str, Any]) -> OldAnswer:
        request_id = f"{len(self._waiting):032x}"
        self._waiting[request_id] = asyncio.get_running_loop().create_future()
        call = {"op": "call_tool", "request_id": request_id, "name": tool, "arguments": arguments}
        await self._socket.send(json.dumps(call))
        frame = await self._waiting[request_id]
        texts = tuple(block["text"] for block in frame["outputs"] if block["type"] == "text")
        return OldAnswer(frame["error"], texts, frame.get("structured"), frame["metadata"])

    async def read(self) -> None:
        """Hand each answer to its caller, until the connection ends."""
        async for text in self._socket:
            frame = json.loads(text)
            if frame["op"] == "call_tool_res":
                self._waiting[frame["request_id"]].set_result(frame)


class StdioClient:
    """A client of PAL: the MCP SDK's, which starts ``toold mcp`` in place of the predecessor."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, tool: str, arguments: dict[str, Any]) -> OldAnswer:
        try:
            reply = await self._client.call_tool(tool, arguments)
        except MCPError as error:  # of a tool that does not exist
            return OldAnswer(error.data, (), None, {})
        texts = tuple(block.text for block in reply.content if block.type == "text")
        structured = reply.structured_content
        metadata = (reply.meta or {}).get("toold/metadata", {})
        failure = (structured or (reply.meta or {}).get("toold/error")) if reply.is_error else None
        return OldAnswer(failure, texts, structured, metadata)


@dataclass(frozen=True)
class Successor:
    """The daemon that old clients use instead of the predecessors."""

    url: str
    state: Path
    workspace: Path
    places: dict[str, str]
    """Values that exist only during the test, by the place that stands for them in the tables."""
    simulator: Simulator

    @asynccontextmanager
    async def websocket(self) -> AsyncIterator[WebSocketClient]:
        """A connected client of EX-AI-MCP-Server."""
        async with connect(self.url, max_size=20 * 1024 * 1024) as socket, asyncio.TaskGroup() as tasks:
            await socket.send(json.dumps({"op": "hello", "session_id": "baseline-1a2b3c4d", "token": TOKEN}))
            assert json.loads(await socket.recv())["ok"]
            client = WebSocketClient(socket)
            reading = tasks.create_task(client.read())
            yield client
            reading.cancel()

    @asynccontextmanager
    async def stdio(self) -> AsyncIterator[StdioClient]:
        """A connected client of PAL."""
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "toold", "mcp"],
            env=daemon_environment(self.state, TOOLD_TOKEN=TOKEN),
            cwd=self.workspace,
        )
        async with Client(stdio_client(server)) as client:
            yield StdioClient(client)


async def answers(client: OldClient, calls: Iterable[OldCall], places: dict[str, str]) -> dict[str, OldAnswer]:
    """The answers by the names of the calls, of which some run at a time."""
    permits = asyncio.Semaphore(AT_ONCE)

    async def answer(row: OldCall) -> tuple[str, OldAnswer]:
        async with permits:
            return row.name, await client.call(row.tool, filled(row.arguments, places))

    return dict(await asyncio.gather(*(answer(row) for row in calls)))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def successor(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Successor]:
    """The daemon, with a small workspace, an uploaded file and a conversation."""
    directory = tmp_path_factory.mktemp("compat")
    workspace = directory / "workspace"
    workspace.mkdir()
    (workspace / "shelf.py").write_text(SHELF)
    (workspace / "notes.txt").write_text("The shelf stays open.\n")
    (directory / "toold.toml").write_text(CONFIG)
    (workspace / "dot.png").write_bytes(base64.b64decode(DOT))
    async with AsyncExitStack() as stack:
        simulator = await stack.enter_async_context(Simulator())
        settings = simulated_environment(
            directory / "state", simulator, TOOLD_WORKSPACE=str(workspace), TOOLD_GRACE_PERIOD_S="1"
        )
        daemon = await stack.enter_async_context(running(load_settings({}, env=settings, cwd=directory)))
        url = daemon.address().url
        yield Successor(url, directory / "state", workspace, {"workspace": str(workspace)}, simulator)


@pytest_asyncio.fixture(loop_scope="module")
async def places(successor: Successor) -> dict[str, str]:
    """The values for one run of the tables: a conversation, and two files at the vendor."""
    async with MCPWebSocketClient(successor.url, token=TOKEN) as client:
        conversation = (await client.call("chat", {"prompt": "Hello"})).structured
        uploads = (await client.call("kimi_upload_files", {"files": ["notes.txt", "shelf.py"]})).structured
    first, second = (file["file_id"] for file in uploads["files"])
    return {
        **successor.places,
        "conversation": conversation["continuation_id"],
        "file_id": first,
        "spare_file_id": second,
    }
