"""Which connections the WebSocket port admits, and what it accepts before the hello."""

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from .websocket_peers import echo, hello, masked


@pytest.fixture
async def daemon(serve: Any, make_tool: Any) -> Any:
    return await serve(make_tool("echo", echo))


async def test_connections_above_the_limit_are_closed_with_1008(serve: Any, join: Any, make_tool: Any) -> None:
    """The reason states the limit; other connections stay open, and a closed one frees its place."""
    daemon = await serve(make_tool("echo", echo), TOOLD_MAX_CONNECTIONS="2")
    first, second = await join(daemon), await join(daemon)
    async with connect(f"ws://127.0.0.1:{daemon.websocket.port}/", compression=None) as third:
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(third.recv(), 20)
        assert third.close_code == 1008
        assert "2 connections" in (third.close_reason or "")
    await first.send("ping")
    assert (await first.receive())["op"] == "pong"
    await second.socket.close()
    async with asyncio.timeout(20):
        while daemon.websocket.connections > 1:
            await asyncio.sleep(0.001)
    assert (await hello(daemon))["ok"]


async def test_connections_counts_those_with_a_hello(daemon: Any, join: Any) -> None:
    """A connection without a hello is not counted, and has a separate slot."""
    async with connect(f"ws://127.0.0.1:{daemon.websocket.port}/", compression=None):
        await join(daemon)
        assert daemon.websocket.connections == 1
        assert "1/5000 +1" in repr(daemon.websocket)


async def test_allowed_origins_may_connect(serve: Any, make_tool: Any) -> None:
    """Exactly those; a client without an origin is not a browser and is admitted."""
    daemon = await serve(make_tool("echo", echo), TOOLD_ALLOWED_ORIGINS="https://tools.example")
    url = f"ws://127.0.0.1:{daemon.websocket.port}/"
    async with connect(url, additional_headers={"Origin": "https://tools.example"}) as socket:
        await socket.send('{"op":"hello"}')
        assert json.loads(await socket.recv())["ok"]
    for origin in ("https://tools.example.evil", "http://tools.example", "null"):
        with pytest.raises(InvalidStatus) as refused:
            await connect(url, additional_headers={"Origin": origin}).__aenter__()
        assert refused.value.response.status_code == 403
    assert (await hello(daemon))["ok"]


async def test_a_draining_daemon_refuses_connections(daemon: Any, join: Any) -> None:
    """New connections get 503; calls on open ones are rejected."""
    peer = await join(daemon)
    await daemon.router.close("The daemon is going down.", 0.0)
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"ws://127.0.0.1:{daemon.websocket.port}/").__aenter__()
    assert refused.value.response.status_code == 503
    await peer.send("call_tool", request_id=1, name="echo")
    assert (await peer.receive())["error"]["code"] == "SERVICE_UNAVAILABLE"


async def test_no_hello_in_time_is_closed_with_4002(serve: Any, make_tool: Any) -> None:
    """The ack states the time limit, before the close."""
    daemon = await serve(make_tool("echo", echo), TOOLD_HELLO_TIMEOUT_S="0.1")
    async with connect(f"ws://127.0.0.1:{daemon.websocket.port}/", compression=None) as socket:
        ack = json.loads(await asyncio.wait_for(socket.recv(), 20))
        assert (ack["ok"], ack["error"]["code"]) == (False, "PROTOCOL_ERROR")
        assert "0.1 s" in ack["error"]["message"]
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(socket.recv(), 20)
        assert socket.close_code == 4002


async def silent(daemon: Any, count: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Opens TCP connections that send nothing."""
    return [await asyncio.open_connection("127.0.0.1", daemon.websocket.port) for _ in range(count)]


async def test_silent_peers_keep_no_client_out(serve: Any, make_tool: Any, join: Any) -> None:
    """However many connect, a client that says hello gets a place, and the oldest of them lose theirs."""
    daemon = await serve(make_tool("echo", echo), TOOLD_MAX_UNAUTHENTICATED="8", TOOLD_MAX_CONNECTIONS="2")
    peers = await silent(daemon, 40)
    client = await join(daemon)
    peers += await silent(daemon, 40)
    assert (await hello(daemon))["ok"]
    await client.send("ping")
    assert (await client.receive())["op"] == "pong"
    for reader, writer in peers[:-8]:
        assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()
    for _, writer in peers[-8:]:
        writer.close()


@pytest.mark.parametrize("fragments", [1, 2])
async def test_the_first_message_is_small(daemon: Any, fragments: int) -> None:
    """One that announces more than 64 KiB is closed with 1009 before its content arrives."""
    async with connect(f"ws://127.0.0.1:{daemon.websocket.port}/", compression=None) as socket:
        if fragments > 1:
            socket.transport.write(masked(0x01, 60_000) + bytes(60_000))
        socket.transport.write(masked(0x80 if fragments > 1 else 0x81, 64 * 1024 + 1 - 60_000 * (fragments - 1)))
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(socket.recv(), 20)
        assert socket.close_code == 1009


async def test_a_large_call_may_follow_the_hello_at_once(daemon: Any) -> None:
    """A client need not wait for the ack, and the limit of the hello does not apply to what follows it."""
    text = "x" * 300_000
    call = json.dumps({"op": "call_tool", "request_id": 1, "name": "echo", "arguments": {"text": text}}).encode()
    greeting = b'{"op":"hello"}'
    async with connect(f"ws://127.0.0.1:{daemon.websocket.port}/", compression=None) as socket:
        socket.transport.write(masked(0x81, len(greeting)) + greeting + masked(0x81, len(call)) + call)
        frames = [json.loads(await asyncio.wait_for(socket.recv(), 20)) for _ in range(2)]
        assert [frame["op"] for frame in frames] == ["hello_ack", "call_tool_res"]
        assert frames[1]["structured"] == {"said": {"text": text}}
