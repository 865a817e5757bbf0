"""An editor on one side of the bridge, the stub of a daemon on the other."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from toold.cli.bridge import DaemonStarter, LineChannel, StdioBridge

Message = dict[str, Any]
PATIENCE_S = 20.0


class Editor:
    """The editor's end of the channel."""

    def __init__(self, source: int, sink: int) -> None:
        self._sink = sink
        self._lines: asyncio.Queue[Any] = asyncio.Queue()
        self._rest = b""
        os.set_blocking(source, False)
        self._source = source
        asyncio.get_running_loop().add_reader(source, self._read)

    def _read(self) -> None:
        *lines, self._rest = (self._rest + os.read(self._source, 65536)).split(b"\n")
        for line in lines:
            self._lines.put_nowait(json.loads(line))

    async def receive(self) -> Any:
        """The next message."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._lines.get()

    def send_raw(self, data: bytes) -> None:
        os.write(self._sink, data)

    def send(self, method: str, **params: Any) -> None:
        """A notification."""
        self.send_raw(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n")

    def begin(self, request_id: int | str, method: str, **params: Any) -> None:
        """Send a request without waiting for its answer."""
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        self.send_raw(json.dumps(message).encode() + b"\n")

    async def ask(self, method: str, **params: Any) -> Message:
        """Send a request and return the next message, which is its answer."""
        self.begin("asked", method, **params)
        answer: Message = await self.receive()
        assert answer["id"] == "asked", answer
        return answer

    async def initialize(self, version: str = "2025-11-25", **capabilities: Any) -> Message:
        """Agree on a revision; returns the result."""
        answer = await self.ask(
            "initialize",
            protocolVersion=version,
            capabilities=capabilities,
            clientInfo={"name": "an-editor", "version": "7"},
        )
        self.send("notifications/initialized")
        result: Message = answer["result"]
        return result


@asynccontextmanager
async def channel(max_bytes: int = 100_000) -> AsyncIterator[tuple[LineChannel, Editor, Callable[[], None]]]:
    """A line channel, the editor at its other end, and a function that closes the editor's end."""
    source, its_sink = os.pipe()
    its_source, sink = os.pipe()
    closed = False

    def close() -> None:
        nonlocal closed
        if not closed:
            closed = True
            os.close(its_sink)

    editor = Editor(its_source, its_sink)
    try:
        yield LineChannel(source, sink, max_bytes), editor, close
    finally:
        close()
        asyncio.get_running_loop().remove_reader(its_source)
        for end in (its_source, sink):
            os.close(end)


Connect = Callable[..., Awaitable[Editor]]


@pytest.fixture
async def editor(daemon: object, tmp_path: Path) -> AsyncIterator[Editor]:
    """An editor whose bridge leads to the stub."""
    async with channel() as (lines, editor, close):
        bridge = StdioBridge(lines, DaemonStarter(os.environ), toolset="standard", directory=tmp_path)
        serving = asyncio.create_task(bridge.serve())
        yield editor
        close()
        async with asyncio.timeout(PATIENCE_S):
            await serving
            await bridge.close()
