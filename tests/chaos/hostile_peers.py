"""Hostile peers of a fault run: they never read, never speak, send large legal frames, or hang their vendor.

Their own calls are not part of the verdict; what they do to the other callers and to the daemon's memory is.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from .hostile import closing, open_silent, send_unread_calls

_STAY_S: Final = 2.0
_SILENT_SOCKETS: Final = 100
_UNREAD_ANSWERS: Final = 16
_UNREAD_CHARS: Final = 4_000_000
_HANGING_CALLS: Final = 6
_HANG_S: Final = 3.0

Peer = Callable[[int, str, random.Random], Awaitable[None]]


async def read_nothing(port: int, token: str, _chance: random.Random) -> None:
    """Ask for large answers on one connection, and read none of them."""
    with await send_unread_calls(port, token, calls=_UNREAD_ANSWERS, size=_UNREAD_CHARS):
        await asyncio.sleep(_STAY_S)


async def say_nothing(port: int, _token: str, _chance: random.Random) -> None:
    """Open many connections and send nothing, or the beginning of a request."""
    async with closing(sockets := []):
        for number in range(_SILENT_SOCKETS):
            sockets.append(await open_silent(port))
            if number % 2:
                sockets[-1].send(b"GET / HTTP/1.1\r\nHost: ")
        await asyncio.sleep(_STAY_S)


async def send_large_frames(port: int, token: str, chance: random.Random) -> None:
    """Send frames with as many values as JSON allows in a few megabytes, and read the answers."""
    frames: list[Mapping[str, Any] | str] = [
        {"op": "call_tool", "request_id": "text", "name": "echo", "arguments": {"text": "x" * 15_000_000}},
        _nested("execute_pipeline", '{"steps":[{"id":"a","tool_name":"echo","args":{"text":[', "]}}]}"),
        _nested("echo", '{"text":[', "]}"),
        '{"op":"call_status","request_ids":[' + ",".join(f'"{number}"' for number in range(500_000)) + "]}",
        '{"op":"acknowledge","request_ids":[' + ",".join(f'"{number}"' for number in range(500_000)) + "]}",
    ]
    chance.shuffle(frames)
    async with _connected(port) as socket:
        await _greet(socket, token)
        for frame in frames:
            await socket.send(frame if isinstance(frame, str) else json.dumps(frame))
        with suppress(TimeoutError):
            async with asyncio.timeout(_STAY_S):
                async for _ in socket:
                    pass


async def hang_the_vendor(port: int, token: str, _chance: random.Random) -> None:
    """Take as many permits of a vendor as one principal gets, with completions that never end."""
    async with _connected(port) as socket:
        await _greet(socket, token)
        for number in range(_HANGING_CALLS):
            await _call(socket, number, "chat", {"prompt": "[[sim:hang]]"}, timeout_ms=_HANG_S * 1000)
        for _ in range(_HANGING_CALLS):
            while json.loads(await socket.recv())["op"] != "call_tool_res":
                pass


PEERS: Final[Mapping[str, Peer]] = {
    "connections that read nothing": read_nothing,
    "floods of silent connections": say_nothing,
    "floods of large frames": send_large_frames,
    "hung completions": hang_the_vendor,
}


async def attack(name: str, port: int, token: str, seed: int, happened: Counter[str]) -> None:
    """Run one kind of peer repeatedly, until cancelled."""
    chance = random.Random(f"{seed} {name}")
    while True:
        with suppress(OSError, TimeoutError, WebSocketException):
            await PEERS[name](port, token, chance)
            happened[name] += 1
        await asyncio.sleep(chance.uniform(0.2, 1.0))


def _connected(port: int) -> connect:
    return connect(f"ws://127.0.0.1:{port}/", compression=None, max_size=None, proxy=None, open_timeout=10)


async def _greet(socket: ClientConnection, token: str) -> None:
    await socket.send(json.dumps({"op": "hello", "token": token}))
    if not json.loads(await socket.recv())["ok"]:
        raise ConnectionRefusedError


async def _call(socket: ClientConnection, number: int, name: str, arguments: Mapping[str, Any], **more: Any) -> None:
    await socket.send(
        json.dumps({"op": "call_tool", "request_id": number, "name": name, "arguments": arguments, **more})
    )


def _nested(name: str, begin: str, end: str) -> str:
    values = ",".join(["[]"] * 500_000)
    return f'{{"op":"call_tool","request_id":"{name}","name":"{name}","arguments":{begin}{values}{end}}}'
