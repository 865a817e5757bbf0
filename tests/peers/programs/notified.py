"""Receives push notifications over HTTP. It imports only the standard library; the programs of a2a-sdk share it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

TOKEN = "of-this-task"


class NotificationReceiver:
    """The notifications that it accepted, in their order: the headers and the body of each."""

    def __init__(self) -> None:
        self.url = ""
        self._received: asyncio.Queue[tuple[dict[str, str], dict[str, Any]]] = asyncio.Queue()

    async def next(self) -> dict[str, Any]:
        """The body of the next notification, which must have the token."""
        headers, body = await self._received.get()
        if headers.get("x-a2a-notification-token") != TOKEN:
            raise ValueError(f"a notification without its token: {headers}")
        return body

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
        self._received.put_nowait((headers, body))


@asynccontextmanager
async def receiving() -> AsyncIterator[NotificationReceiver]:
    """A receiver on a free loopback port."""
    receiver = NotificationReceiver()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    async with server:
        yield receiver
