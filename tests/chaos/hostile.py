"""Clients that try to exhaust the daemon's memory and sockets: they do not read, do not finish, or say nothing.

``python -m tests.chaos.hostile`` starts a daemon for each of them and prints its resident memory.
"""

import asyncio
import json
import os
import resource
import socket
import struct
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

import psutil

from .daemon import Daemon

_UPGRADE: Final = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
_TEXT: Final = 1
_PIECE: Final = 64 * 1024
_GIVE_UP_S: Final = 20.0
"""How long one client tries to send before it stays as it is."""
MEBIBYTE: Final = 1024**2
_USUAL_OPEN_FILES: Final = 1024
"""The soft limit on most systems."""
_OPEN_FILES: Final = 20_000
"""What 5,000 sockets of the attacker need."""


def client_frame(payload: bytes, opcode: int = _TEXT) -> bytes:
    """A client's frame (RFC 6455, 5.2). The mask is zero, so the payload is unchanged."""
    return _head(len(payload), opcode) + payload


def _head(length: int, opcode: int = _TEXT) -> bytes:
    size = struct.pack("!B", 0x80 | length) if length < 126 else struct.pack("!BQ", 0xFF, length)
    return bytes([0x80 | opcode]) + size + bytes(4)


def hello(token: str) -> bytes:
    """The frame that logs in."""
    return client_frame(json.dumps({"op": "hello", "token": token}).encode())


async def open_silent(port: int) -> socket.socket:
    """A TCP connection with a small receive buffer."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.setblocking(False)
    await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", port))
    return raw


async def open_websocket(port: int) -> socket.socket:
    """A WebSocket connection that has sent no hello."""
    raw = await open_silent(port)
    loop, answer = asyncio.get_running_loop(), b""
    await loop.sock_sendall(raw, _UPGRADE)
    while b"\r\n\r\n" not in answer:
        piece = await loop.sock_recv(raw, 1)
        if not piece:
            raise ConnectionResetError("the daemon closed the connection during the upgrade")
        answer += piece
    return raw


async def _send_as_accepted(raw: socket.socket, pieces: Iterable[bytes]) -> None:
    """Send until all is sent, or the daemon reads no more or closes the connection."""
    with suppress(TimeoutError, OSError):
        async with asyncio.timeout(_GIVE_UP_S):
            for piece in pieces:
                await asyncio.get_running_loop().sock_sendall(raw, piece)


async def send_unread_calls(port: int, token: str, *, calls: int, size: int) -> socket.socket:
    """A client whose calls have answers of ``size`` bytes that it never reads."""
    text = b"x" * size
    raw = await open_websocket(port)
    await _send_as_accepted(raw, chain([hello(token)], (_echo(number, text) for number in range(calls))))
    return raw


def _echo(number: int, text: bytes) -> bytes:
    call = b'{"op":"call_tool","request_id":%d,"name":"echo","arguments":{"text":"%b"}}'
    return client_frame(call % (number, text))


async def send_unfinished_frame(port: int, size: int, token: str | None = None) -> socket.socket:
    """A client that begins a frame of ``size`` bytes and sends all of it but the last byte; with a token, after its
    hello."""
    raw = await open_websocket(port)
    pieces = [bytes(_PIECE)] * (size // _PIECE)
    await _send_as_accepted(raw, [hello(token) if token else b"", _head(size + 1), *pieces])
    return raw


@asynccontextmanager
async def closing(sockets: list[socket.socket]) -> AsyncIterator[None]:
    try:
        yield
    finally:
        for raw in sockets:
            raw.close()


async def honest_login(port: int, token: str) -> float:
    """Connect and log in as an honest client does. Returns the seconds that it took.

    Raises:
        OSError: the daemon did not let it in.
    """
    began = time.monotonic()
    async with asyncio.timeout(_GIVE_UP_S):
        raw = await open_websocket(port)
        with raw:
            loop, answer = asyncio.get_running_loop(), b""
            await loop.sock_sendall(raw, hello(token))
            while b'"ok":true' not in answer:
                piece = await loop.sock_recv(raw, 4096)
                if not piece:
                    raise ConnectionResetError(f"no login: {answer[:300]!r}")
                answer += piece
    return time.monotonic() - began


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack; ``clients`` of them do the same at once."""

    name: str
    clients: int
    calls: int = 0
    size: int = 0
    logged_in: bool = True


ATTACKS: Final = (
    Attack("32 unread answers of 19 MB", 1, calls=32, size=19_000_000),
    Attack("6 clients, 32 unread answers of 5 MB each", 6, calls=32, size=5_000_000),
    Attack("60 unfinished first frames of 19.9 MB", 60, size=19_900_000, logged_in=False),
    Attack("60 unfinished frames of 19.9 MB after login", 60, size=19_900_000),
    Attack("5,000 silent sockets", 5000, logged_in=False),
)


async def _start(attack: Attack, daemon: Daemon) -> socket.socket:
    if attack.calls:
        return await send_unread_calls(daemon.port, daemon.token, calls=attack.calls, size=attack.size)
    if attack.size:
        return await send_unfinished_frame(daemon.port, attack.size, daemon.token if attack.logged_in else None)
    return await open_silent(daemon.port)


def _allow_open_files(number: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(number, hard), hard))


async def _measure(attack: Attack, settings: dict[str, str]) -> str:
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="toold-hostile-")))
        daemon = Daemon(directory, settings)
        _allow_open_files(_USUAL_OPEN_FILES)  # which the daemon inherits
        await daemon.start()
        _allow_open_files(_OPEN_FILES)
        stack.push_async_callback(daemon.close)
        process = psutil.Process(daemon.pid)
        await asyncio.sleep(3)
        before = peak = process.memory_info().rss
        begun = [asyncio.create_task(_start(attack, daemon)) for _ in range(attack.clients)]
        waiting = asyncio.gather(*begun, return_exceptions=True)
        while not waiting.done():
            peak = max(peak, process.memory_info().rss)
            await asyncio.sleep(0.05)
        for _ in range(40):
            peak = max(peak, process.memory_info().rss)
            await asyncio.sleep(0.05)
        sockets = [item for item in waiting.result() if isinstance(item, socket.socket)]
        async with closing(sockets):
            try:
                login = f"login {await honest_login(daemon.port, daemon.token):.2f} s"
            except (OSError, TimeoutError) as error:
                login = f"no login ({type(error).__name__})"
        await asyncio.sleep(8)
        after = process.memory_info().rss
    figures = " ".join(f"{value / MEBIBYTE:8.0f}" for value in (before, peak, after))
    return f"{attack.name:<45}{figures}  {login}"


async def main() -> None:
    settings = {name: value for name, value in os.environ.items() if name.startswith("TOOLD_")}
    print(f"{'MiB resident':<45}{'before':>8} {'peak':>8} {'after':>8}", flush=True)
    for attack in ATTACKS:
        print(await _measure(attack, settings), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
