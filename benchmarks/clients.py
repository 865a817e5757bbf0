"""Clients with one call in flight each, over a WebSocket or over HTTP; failures are exceptions."""

import asyncio
import json
import re
from typing import Final, Protocol, cast

from .wire import HELLO, TEXT, Connection, masked

NUMBER: Final = b"%010d"
"""The format of the number that makes each text unique."""
_PLACE: Final = NUMBER % 0
_REVISION: Final = "2025-06-18"
_FAILED: Final = re.compile(rb'"error":\s*\{|"isError":\s*true')
_ENDS: Final = 300
"""The bytes at each end of an answer that are searched for an error."""
_ANSWER: Final = b'{"op":"call_tool'
"""The beginnings of answers by the daemon and the bare server, unlike heartbeats."""


class CallFailedError(Exception):
    """The answer is wrong."""


class Client(Protocol):
    """One connection and its calls."""

    async def open(self) -> None:
        """Connect.

        Raises:
            OSError: it cannot be connected.
            CallFailedError: the server refuses to begin.
        """
        ...

    async def call(self, number: bytes) -> None:
        """Call with a text that has this number.

        Raises:
            OSError: the connection broke.
            CallFailedError: the answer is an error, or another text.
        """
        ...

    def close(self) -> None: ...


class SocketClient:
    """Calls as the daemon's frames."""

    def __init__(self, port: int, path: str, tool: str, arguments: dict[str, int], payload: int) -> None:
        self._port, self._path, self._payload = port, path, payload
        frame = {
            "op": "call_tool",
            "request_id": _PLACE.decode(),
            "name": tool,
            "arguments": {"text": _text(payload), **arguments},
        }
        self._pieces = masked(TEXT, _json(frame)).split(_PLACE)
        self._connection: Connection | None = None
        self._answer: asyncio.Future[bytes] | None = None

    async def open(self) -> None:
        self._connection = await Connection.open(self._port, HELLO, self._path)
        self._connection.on_text = self._on_text
        self._connection.closed.add_done_callback(self._on_end)

    async def call(self, number: bytes) -> None:
        if self._connection is None or self._connection.closed.done():
            raise ConnectionError("the connection was closed between calls")
        self._answer = asyncio.get_running_loop().create_future()
        self._connection.send(number.join(self._pieces))
        _check(await self._answer, number, self._payload)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _on_text(self, payload: bytes) -> None:
        if self._answer is not None and not self._answer.done() and payload.startswith(_ANSWER):
            self._answer.set_result(payload)

    def _on_end(self, closed: "asyncio.Future[str]") -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError(closed.result()))


class HttpClient(asyncio.Protocol):
    """Calls as MCP requests to ``/mcp``, in a session if the server opens one."""

    def __init__(self, port: int, tool: str, arguments: dict[str, int], payload: int) -> None:
        self._port, self._payload = port, payload
        params = {"name": tool, "arguments": {"text": _text(payload), **arguments}}
        self._body = _json({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        self._pieces: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[tuple[bytes, bytes]] | None = None
        self._received = bytearray()
        self._head = b""
        self._length: int | None = None

    async def open(self) -> None:
        self._head, self._length = b"", None
        self._received.clear()
        await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", self._port)
        params = {"protocolVersion": _REVISION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        begin = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        head, answer = await self._ask([self._request(_json(begin))])
        if b'"result"' not in answer:
            raise CallFailedError(answer[:_ENDS].decode(errors="replace"))
        found = re.search(rb"(?i)\r\n(mcp-session-id: *[^\r]+\r\n)", head)
        label = found[1] if found else b""
        await self._ask([self._request(b'{"jsonrpc":"2.0","method":"notifications/initialized"}', label)])
        self._pieces = self._request(self._body, label).split(_PLACE)

    async def call(self, number: bytes) -> None:
        _, answer = await self._ask([number.join(self._pieces)])
        _check(answer, number, self._payload)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._length is None:
            head, end, _ = self._received.partition(b"\r\n\r\n")
            if not end:
                return
            self._head = bytes(head + b"\r\n")
            found = re.search(rb"(?i)\r\ncontent-length: *(\d+)", self._head)
            self._length = int(found[1]) if found else 0
            del self._received[: len(head) + len(end)]
        if len(self._received) >= self._length and self._answer is not None and not self._answer.done():
            body, self._received, self._length = bytes(self._received), bytearray(), None
            self._answer.set_result((self._head, body))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError(f"the connection was closed within a call: {exc}"))

    async def _ask(self, pieces: list[bytes]) -> tuple[bytes, bytes]:
        """Returns the head and body of the answer."""
        if self._transport is None:
            raise ConnectionError("the connection was closed between calls")
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.writelines(pieces)
        return await self._answer

    def _request(self, body: bytes, label: bytes = b"") -> bytes:
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {_REVISION}\r\n"
            f"Content-Length: {len(body)}\r\n"
        )
        return head.encode() + label + b"\r\n" + body


def _text(payload: int) -> str:
    """An ASCII text of this length that starts with a placeholder for the number."""
    words = "a line of text to be echoed, "
    return (_PLACE.decode() + " " + words * (payload // len(words) + 1))[:payload]


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _check(answer: bytes, number: bytes, payload: int) -> None:
    if len(answer) < payload or number not in answer or _FAILED.search(answer[:_ENDS] + answer[-_ENDS:]):
        raise CallFailedError(answer[:_ENDS].decode(errors="replace"))
