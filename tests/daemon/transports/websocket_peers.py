"""Peers of the WebSocket port: hellos, frames as bytes, and how a connection ends."""

import json
import struct
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed


async def echo(arguments: Any, context: Any) -> Any:
    """Returns its argument."""
    return {"said": arguments.model_extra}


async def closed(peer: Any) -> tuple[list[str], int | None, str]:
    """Reads to the end; returns the remaining ops, the close code and its reason."""
    ops: list[str] = []
    try:
        while True:
            ops.append((await peer.receive())["op"])
    except ConnectionClosed:
        return ops, peer.socket.close_code, peer.socket.close_reason or ""


async def hello(daemon: Any, **fields: Any) -> dict[str, Any]:
    """Returns the ack of a hello."""
    async with connect(f"ws://127.0.0.1:{daemon.websocket.port}/", compression=None) as socket:
        await socket.send(json.dumps({"op": "hello", **fields}))
        ack: dict[str, Any] = json.loads(await socket.recv())
        return ack


def masked(first: int, length: int) -> bytes:
    """The head of a client's frame (RFC 6455, 5.2), with a mask of zeros."""
    return bytes([first]) + struct.pack("!BQ", 0xFF, length) + bytes(4)
