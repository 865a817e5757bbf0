"""Slow readers are disconnected and do not affect other clients."""

import asyncio
import contextlib
import json
import os
import socket
import struct
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import psutil
import pytest
from websockets.asyncio.client import connect

PATIENCE = {"TOOLD_PING_INTERVAL_S": "0.5", "TOOLD_PING_TIMEOUT_S": "1.5"}
RESUME = ["ack", "resume"]
ANSWER = "x" * 100_000
MEGABYTE = 1024**2


def masked(opcode: int, payload: bytes) -> bytes:
    """A client's frame (RFC 6455, 5.2). The mask is zero, so the payload is unchanged."""
    if len(payload) < 126:
        length = struct.pack("!B", 0x80 | len(payload))
    else:
        length = struct.pack("!BQ", 0x80 | 127, len(payload))
    return bytes([0x80 | opcode]) + length + bytes(4) + payload


@contextlib.asynccontextmanager
async def unreading(port: int) -> AsyncIterator[asyncio.StreamWriter]:
    """A WebSocket connection whose peer reads only the answer to the upgrade."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.setblocking(False)
    await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=raw, limit=1024)
    writer.write(
        b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    await reader.readuntil(b"\r\n\r\n")
    try:
        yield writer
    finally:
        writer.transport.abort()


async def flood(writer: asyncio.StreamWriter, frame: bytes, megabytes: int) -> None:
    """Send copies of one frame until the daemon accepts no more data."""
    with contextlib.suppress(TimeoutError, OSError):
        async with asyncio.timeout(5):
            for _ in range(megabytes):
                writer.write(frame * (1_000_000 // len(frame)))
                await writer.drain()


async def until(daemon: Any, seen: str) -> None:
    """Wait until the daemon has logged the event."""
    async with asyncio.timeout(30):
        while seen not in daemon.logged():
            await asyncio.sleep(0.05)


async def test_a_client_that_reads_nothing_is_closed_with_a_reason(start_daemon: Any) -> None:
    """Its unsent answers delay no other client, and its connection slot is released."""
    daemon = start_daemon(**PATIENCE, TOOLD_MAX_WAITING="4")
    async with unreading(daemon.port) as writer, daemon.peer() as other:
        writer.write(masked(1, json.dumps({"op": "hello", "token": daemon.token}).encode()))
        call = {"op": "call_tool", "name": "echo", "arguments": {"text": "x" * 2_000_000}}
        for number in range(8):
            writer.write(masked(1, json.dumps({**call, "request_id": number}).encode()))
        for number in range(8):
            assert (await other.call(number, "echo", text="x", delay_ms=20))["error"] is None
        await until(daemon, "the reader is too slow")
        async with asyncio.timeout(20):
            while (await other.call(uuid4().hex, "status"))["structured"]["connections"] > 1:
                await asyncio.sleep(0.05)


async def warm_up(daemon: Any) -> None:
    """Wait for modules that the daemon imports after its start, since they use memory."""
    async with daemon.peer() as peer:
        for model in ("kimi-k2.6", "glm-4.6"):
            assert (await peer.call(model, "chat", prompt="Hello", model=model))["error"] is None
    headers = {"Authorization": f"Bearer {daemon.token}", "Accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(verify=False) as http:
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        await http.post(f"http://127.0.0.1:{daemon.http_port}/mcp", json=ping, headers=headers, timeout=60)


async def test_pings_of_a_stalled_reader_use_no_memory(start_daemon: Any) -> None:
    """Pongs for a slow reader are dropped, and the peer is disconnected, also before its hello."""
    daemon = start_daemon(**PATIENCE, TOOLD_HELLO_TIMEOUT_S="60")
    await warm_up(daemon)
    async with unreading(daemon.port) as writer:
        before = resident_bytes(daemon)
        await flood(writer, masked(9, b"x" * 100), megabytes=60)
        assert resident_bytes(daemon) - before < 30_000_000
        async with asyncio.timeout(30):
            while not writer.transport.is_closing():
                writer.write(masked(9, b"still there?"))
                await asyncio.sleep(0.1)


async def test_silent_peers_do_not_delay_the_end(start_daemon: Any) -> None:
    """A silent TCP connection and a stalled reader are disconnected when the daemon stops."""
    daemon = start_daemon(TOOLD_GRACE_PERIOD_S="30")
    silent_reader, silent_writer = await asyncio.open_connection("127.0.0.1", daemon.port)
    async with unreading(daemon.port) as writer:
        writer.write(masked(1, json.dumps({"op": "hello", "token": daemon.token}).encode()))
        call = {"op": "call_tool", "name": "echo", "arguments": {"text": "x" * 9_000_000}}
        writer.write(masked(1, json.dumps({**call, "request_id": 1}).encode()))
        async with daemon.peer() as other:
            while (await other.call(uuid4().hex, "status"))["structured"]["totals"]["all"]["calls"] < 1:
                await asyncio.sleep(0.05)
        started = os.times().elapsed
        assert await asyncio.to_thread(daemon.stop) == 0
        assert os.times().elapsed - started < 20
    silent_writer.transport.abort()
    assert await silent_reader.read() == b""


@contextlib.asynccontextmanager
async def deaf(daemon: Any, **hello: Any) -> AsyncIterator[Any]:
    """A connection that reads its ack and nothing else, with a minimal socket buffer."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.connect(("127.0.0.1", daemon.port))
    async with connect(daemon.url, sock=raw, compression=None, max_size=None, ping_interval=None) as connection:
        await connection.send(json.dumps({"op": "hello", "token": daemon.token, **hello}))
        ack = json.loads(await connection.recv())
        connection.transport.pause_reading()
        try:
            yield connection, ack
        finally:
            connection.transport.abort()


async def send_echoes(connection: Any, numbers: range) -> None:
    for number in numbers:
        call = {"op": "call_tool", "request_id": number, "name": "echo", "arguments": {"text": ANSWER}}
        await connection.send(json.dumps(call))


async def until_answered(watcher: Any, count: int) -> None:
    """Wait until this number of echoes is answered, whether read or not."""
    async with asyncio.timeout(60):
        while (await watcher.status())["totals"]["by_tool"].get("echo", {}).get("calls", 0) < count:
            await asyncio.sleep(0.05)


def resident_bytes(daemon: Any) -> int:
    """The resident memory of the daemon's process."""
    return int(psutil.Process(daemon.process.pid).memory_info().rss)


async def test_a_slow_reader_gets_every_answer_after_a_resume(start_daemon: Any) -> None:
    """Terminal answers are never dropped: unread ones are redelivered once."""
    daemon = start_daemon(**PATIENCE)
    async with daemon.peer() as watcher, deaf(daemon, features=["resume"]) as (connection, ack):
        await send_echoes(connection, range(32))  # without acks, which would wait until answers are read
        await until_answered(watcher, 32)
        await until(daemon, "connection closed")
    async with daemon.peer(features=RESUME, resume={"key": ack["resume_key"]}) as resumed:
        answers = [await resumed.until("call_tool_res") for _ in range(32)]
        assert sorted(answer["request_id"] for answer in answers) == list(range(32))
        assert all(answer["outputs"][0]["text"] == ANSWER for answer in answers)


@pytest.mark.parametrize("features", [[], ["resume"]], ids=["plain", "coming back"])
async def test_unread_answers_do_not_grow_the_daemon(start_daemon: Any, features: list[str]) -> None:
    """After 1,000 answers of 100 KB, 32 per connection, the daemon's memory has grown by at most
    ``max_cached_result_bytes``, the answers of one connection, and the working memory that 1,000 calls need with any
    reader.
    """
    retained_bytes = 16 * MEGABYTE
    daemon = start_daemon(TOOLD_MAX_CACHED_RESULT_BYTES=str(retained_bytes))
    hello: dict[str, Any] = {"features": features}
    await warm_up(daemon)
    async with daemon.peer() as watcher:
        async with deaf(daemon) as (connection, _):
            await send_echoes(connection, range(32))
            await until_answered(watcher, 32)
        before = resident_bytes(daemon)
        for turn in range(1, 33):
            async with deaf(daemon, **hello) as (connection, ack):
                await send_echoes(connection, range(32 * turn, 32 * turn + 32))
                await until_answered(watcher, 32 * turn + 32)
                if features:
                    hello["resume"] = {"key": ack["resume_key"]}
        assert resident_bytes(daemon) - before < retained_bytes + 32 * len(ANSWER) + 64 * MEGABYTE


async def test_redelivery_respects_a_stalled_reader(start_daemon: Any) -> None:
    """60 MB of cached answers are not written to a stalled reader: each waits for the previous one."""
    daemon = start_daemon()
    await warm_up(daemon)
    async with daemon.peer(features=["resume"]) as peer:
        for number in range(600):
            assert (await peer.call(number, "echo", text=ANSWER))["error"] is None
    before = resident_bytes(daemon)
    async with (
        deaf(daemon, features=["resume"], resume={"key": peer.ack["resume_key"]}) as (_, ack),
        daemon.peer() as watcher,
    ):
        assert ack["resumed"]
        for _ in range(3):
            await watcher.status()
        assert resident_bytes(daemon) - before < 20 * MEGABYTE


async def test_pipelined_requests_are_answered_at_the_readers_pace(start_daemon: Any) -> None:
    """20,000 small requests with large answers in one write: the daemon buffers no more than the reader limit."""
    daemon = start_daemon()
    await warm_up(daemon)
    async with daemon.peer() as watcher, deaf(daemon) as (connection, _):
        await watcher.status()
        before = resident_bytes(daemon)
        connection.transport.write(masked(1, b'{"op":"list_tools"}') * 20_000)
        for _ in range(20):
            await watcher.status()
        assert resident_bytes(daemon) - before < 30 * MEGABYTE
