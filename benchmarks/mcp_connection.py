"""One MCP client over HTTP at minimal cost, for load: a connection with one call in flight."""

import asyncio
import json
import re
import time
from itertools import count
from typing import Final, cast

REVISION: Final = "2025-06-18"
TEXT: Final = "a line of text to be echoed, %09d"
NUMBERS: Final = count()
"""The number that makes each text unique."""
_LENGTH: Final = re.compile(rb"(?i)\r\ncontent-length: *(\d+)\r")
_CHUNKED: Final = re.compile(rb"(?i)\r\ntransfer-encoding: *chunked\r")


class McpConnection(asyncio.Protocol):
    """One connection to ``/mcp``, with a session if the server opens one, at minimal cost."""

    def __init__(self, port: int, tool: str, token: str = "") -> None:
        self._port = port
        self._token = f"Authorization: Bearer {token}\r\n" if token else ""
        self.latencies: list[float] = []
        """Seconds, one for each call since ``call_until``."""
        self._sent_at = 0.0
        self._label = b""
        self._transport: asyncio.Transport
        self._answer = bytearray()
        self._answered: asyncio.Future[bytes] | None = None
        # During the calls: the end time, the count, the expected text, and the future of the end.
        self._end, self._calls, self._awaited = 0.0, 0, b""
        self._done: asyncio.Future[int] | None = None
        params = {"name": tool, "arguments": {"text": TEXT}}
        self._call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        self._before, self._behind = b"", b""

    @classmethod
    async def open(cls, port: int, tool: str, token: str = "") -> "McpConnection":
        """Connect, and initialize as a client would."""
        loop = asyncio.get_running_loop()
        _, self = await loop.create_connection(lambda: cls(port, tool, token), "127.0.0.1", port)
        params = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        begin = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        answer = await self._ask(self._request(json.dumps(begin)))
        if label := re.search(rb"(?i)\r\nmcp-session-id: *\S+", answer):
            self._label = label[0].lstrip() + b"\r\n"
        await self._ask(self._request('{"jsonrpc":"2.0","method":"notifications/initialized"}'))
        self._before, _, self._behind = self._request(self._call % 0).partition(b"%09d" % 0)
        return self

    async def call_until(self, end: float) -> int:
        """Call until the instant ``end``, at least once. Returns the number of calls.

        Raises:
            RuntimeError: an answer has a wrong text.
        """
        self._end, self._calls, self.latencies = end, 0, []
        self._done = asyncio.get_running_loop().create_future()
        self._next()
        return await self._done

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from it

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head = self._answer.find(b"\r\n\r\n")
        if head < 0:
            return
        length = _LENGTH.search(self._answer, 0, head + 2)
        if length:
            complete = len(self._answer) >= head + 4 + int(length[1])
        else:  # ContextForge accepts a notification so
            complete = not _CHUNKED.search(self._answer, 0, head + 2) or self._answer.endswith(b"0\r\n\r\n")
        if not complete:
            return
        answer = bytes(self._answer)
        self._answer.clear()
        if self._answered is not None:
            self._answered.set_result(answer)
            self._answered = None
        elif self._awaited in answer:
            self._calls += 1
            self.latencies.append(time.perf_counter() - self._sent_at)
            self._next()
        else:
            self._fail(f"the server answered {answer[head:][:300]!r}")

    def connection_lost(self, _: Exception | None) -> None:
        self._fail("the server closed the connection")

    def _next(self) -> None:
        """Send the next call, if there is time left."""
        assert self._done is not None
        if self._calls and time.perf_counter() >= self._end:
            self._done.set_result(self._calls)
            return
        self._awaited = b"%09d" % next(NUMBERS)
        self._sent_at = time.perf_counter()
        self._transport.write(self._before + self._awaited + self._behind)

    def _fail(self, reason: str) -> None:
        for waiter in (self._answered, self._done):
            if waiter is not None and not waiter.done():
                waiter.set_exception(RuntimeError(reason))

    def _request(self, body: str) -> bytes:
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {REVISION}\r\n"
            f"Content-Length: {len(body)}\r\n{self._token}"
        )
        return head.encode() + self._label + b"\r\n" + body.encode()

    async def _ask(self, request: bytes) -> bytes:
        """Process the complete answer."""
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._answered = answered
        self._transport.write(request)
        return await answered
