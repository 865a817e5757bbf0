"""Peers that take nothing: they are closed, and cost nobody else anything."""

import asyncio
import contextlib
import json
import os
import socket
import struct
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

PATIENCE = {"TOOLD_PING_INTERVAL_S": "0.5", "TOOLD_PING_TIMEOUT_S": "0.5"}


def masked(opcode: int, payload: bytes) -> bytes:
    """A client's frame (RFC 6455, 5.2); the mask is zero, which leaves the payload as it is."""
    if len(payload) < 126:
        length = struct.pack("!B", 0x80 | len(payload))
    else:
        length = struct.pack("!BQ", 0x80 | 127, len(payload))
    return bytes([0x80 | opcode]) + length + bytes(4) + payload


@contextlib.asynccontextmanager
async def unreading(port: int) -> AsyncIterator[asyncio.StreamWriter]:
    """A WebSocket connection whose peer reads the upgrade's answer and nothing after it."""
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
    """Send so much of one frame, until the daemon takes no more of it."""
    with contextlib.suppress(TimeoutError, OSError):
        async with asyncio.timeout(5):
            for _ in range(megabytes):
                writer.write(frame * (1_000_000 // len(frame)))
                await writer.drain()


async def until(daemon: Any, seen: str) -> None:
    """Return once the daemon has logged it."""
    async with asyncio.timeout(30):
        while seen not in daemon.logged():
            await asyncio.sleep(0.05)


async def test_a_reader_that_takes_nothing_is_closed_with_a_reason(start_daemon: Any) -> None:
    """Its unsent answers hold nobody else up, and its place is free again."""
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


async def test_a_peer_that_pings_and_does_not_read_fills_no_memory(start_daemon: Any) -> None:
    """Pongs for a reader that is behind are dropped, and the peer is cut off, also before its hello."""
    daemon = start_daemon(**PATIENCE, TOOLD_HELLO_TIMEOUT_S="60")
    async with unreading(daemon.port) as writer:
        before = resident_bytes(daemon.process.pid)
        await flood(writer, masked(9, b"x" * 100), megabytes=60)
        assert resident_bytes(daemon.process.pid) - before < 30_000_000
        async with asyncio.timeout(30):
            while not writer.transport.is_closing():
                writer.write(masked(9, b"still there?"))
                await asyncio.sleep(0.1)


def resident_bytes(pid: int) -> int:
    """What a process has in memory."""
    psutil = pytest.importorskip("psutil")
    return int(psutil.Process(pid).memory_info().rss)


async def test_peers_that_say_nothing_do_not_hold_up_the_end(start_daemon: Any) -> None:
    """A silent TCP connection, and a reader that takes nothing, are cut when the daemon stops."""
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
