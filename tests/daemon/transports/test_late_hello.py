"""A hello that arrives after a later one of the same client does not take its session."""

import asyncio
import json
from contextlib import suppress
from typing import Any, Self

import pytest
from toold.client import MCPWebSocketClient, reconnect_policy, socket_opening
from websockets.asyncio.client import connect

from .websocket_peers import closed, echo, hello


@pytest.fixture
async def daemon(serve: Any, make_tool: Any) -> Any:
    return await serve(make_tool("echo", echo))


async def test_a_late_resume_does_not_take_the_session(daemon: Any, join: Any) -> None:
    """A lower or equal number is refused with 4005 and the newest number; the newer connection is not affected. A hello
    without a number, of an older client, takes over as before.
    """
    key = (await hello(daemon, features=["resume"]))["resume_key"]
    newer = await join(daemon, features=["resume"], resume={"key": key, "n": 5})
    for number in (5, 4):
        late = await hello(daemon, features=["resume"], resume={"key": key, "n": number})
        assert (late["ok"], late["error"]["code"], late["error"]["details"]) == (False, "PROTOCOL_ERROR", {"n": 5})
    async with connect(f"ws://127.0.0.1:{daemon.websocket.port}/", compression=None) as socket:
        await socket.send(json.dumps({"op": "hello", "features": ["resume"], "resume": {"key": key, "n": 1}}))
        await socket.recv()
        await socket.wait_closed()
        assert socket.close_code == 4005
    await newer.send("call_tool", request_id=1, name="echo", arguments={"x": 1})
    assert (await newer.until_answered(1))[-1]["error"] is None
    old_client = await join(daemon, features=["resume"], resume={"key": key})
    assert (await closed(newer))[1] == 4004
    newest = await join(daemon, features=["resume"], resume={"key": key, "n": 6})
    assert (await closed(old_client))[1] == 4004
    await newest.send("call_tool", request_id=2, name="echo", arguments={})
    assert (await newest.until_answered(2))[-1]["error"] is None


class LateLine:
    """A TCP proxy that holds back what the second client sends after its upgrade, until it is released."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connections = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.released = asyncio.Event()
        self.delivered = asyncio.Event()
        """The late hello was answered or closed by the daemon."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.lines: list[asyncio.StreamWriter] = []
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._pass_on(reader, writer))
        self._tasks.add(task)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        late = self._connections == 2
        from_daemon, to_daemon = await asyncio.open_connection("127.0.0.1", self._port)
        self.lines.append(writer)
        answering = asyncio.create_task(self._copy(from_daemon, writer))
        try:
            to_daemon.write(await reader.readuntil(b"\r\n\r\n"))
            if late:
                hello = await reader.read(2**16)
                await self.released.wait()
                to_daemon.write(hello)
                await answering
                self.delivered.set()
            else:
                await self._copy(reader, to_daemon)
        finally:
            for each in (to_daemon, writer):
                each.transport.abort()
                with suppress(OSError):
                    await each.wait_closed()
            answering.cancel()
            await asyncio.wait([answering])

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(2**16):
                if not writer.is_closing():
                    writer.write(piece)


async def test_a_late_hello_does_not_cost_a_client_its_session(daemon: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt that the client gave up arrives after the next one: the client keeps its session and its calls."""
    async with LateLine(daemon.websocket.port) as line:
        client = MCPWebSocketClient(port=line.port, token="any")
        assert await client.connect()
        monkeypatch.setattr(socket_opening, "OPEN_TIMEOUT_S", 0.3)  # for the attempt that hangs
        monkeypatch.setattr(reconnect_policy, "FIRST_WINDOW_S", 0.01)
        line.lines[0].transport.abort()
        result = await client.call("echo", {"x": 1}, timeout=20)  # over the third connection, or a later one
        monkeypatch.undo()
        held = client._link.connection
        line.released.set()
        async with asyncio.timeout(20):
            await line.delivered.wait()
        repeat = await client.call("echo", {"x": 1}, timeout=20)
        assert (repeat.structured, client._link.connection) == (result.structured, held)
        await client.disconnect()
