"""Writes of one turn of the event loop, joined into one.

The answers of calls that end in the same turn go out with one system call for each connection instead of one for each
answer: with many calls in flight that is the largest single cost of an answer (decision 7). An answer that is alone
leaves in the next turn, some microseconds later.
"""

import asyncio
from typing import Any, cast

import structlog
from websockets.asyncio.server import ServerConnection

_log = structlog.get_logger("toold.websocket")


class TurnTransport:
    """A transport that keeps what is written until the end of the turn; all else is the transport's own."""

    __slots__ = ("_call_soon", "_scheduled", "_transport", "_unsent")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._call_soon = asyncio.get_running_loop().call_soon
        self._unsent: list[bytes] = []
        self._scheduled = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        self._unsent.append(data)
        if not self._scheduled:
            self._scheduled = True
            self._call_soon(self._flush)

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size() + sum(map(len, self._unsent))

    def write_eof(self) -> None:
        self._flush()
        self._transport.write_eof()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        self._unsent.clear()
        self._transport.abort()

    def _flush(self) -> None:
        self._scheduled = False
        if self._unsent:
            data = self._unsent[0] if len(self._unsent) == 1 else b"".join(self._unsent)
            self._unsent.clear()
            self._transport.write(data)


class TurnConnection(ServerConnection):
    """A WebSocket connection on such a transport. Where it never becomes one, that is a line in the log."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast("asyncio.Transport", transport)  # a server's connections are streams; uvloop's have no such base
        super().connection_made(cast("asyncio.Transport", TurnTransport(stream)))

    def connection_lost(self, exc: Exception | None) -> None:
        if self.response is None:  # the library is silent about peers that speak no HTTP or leave too early
            peer = self.transport.get_extra_info("peername") or ("unknown",)
            _log.info("handshake refused: no WebSocket request came", peer=":".join(map(str, peer[:2])))
        super().connection_lost(exc)
