"""One open connection to the daemon: sends and receives frames, with a heartbeat.

State that outlives the connection is in ``client_session``; ``client_link`` reconnects.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Self

import websockets
from websockets.protocol import State

from ..protocol.error_codes import Executed, InvalidArgumentsError
from ..protocol.frames import CLOSE_NO_PONG, GoingAway, HelloAck, ServerFrame
from ..protocol.tool_call import MAX_FRAME_BYTES
from .client_errors import ConnectionLostError, closed_with, describe_close
from .client_frames import read_frame
from .daemon_endpoint import DaemonEndpoint
from .socket_opening import CLOSE_TIMEOUT_S, OpenSocket, exchange_hello, open_socket

_log = logging.getLogger(__name__)

PING_INTERVAL_S: Final = 20.0
PING_TIMEOUT_S: Final = 20.0
"""The heartbeat of docs/protocol.md: a dead peer is detected within the sum of both."""


class ClientConnection:
    """An open connection after a successful hello. Reads nothing until ``start``."""

    def __init__(self, socket: OpenSocket, ack: HelloAck, endpoint: DaemonEndpoint, max_message_size: int) -> None:
        self.ack = ack
        self.endpoint = endpoint
        self.going_away = False
        """Whether the daemon is going away: it answers running calls, but accepts no new ones."""
        self.confirmed = False
        """Whether the connection works: a pong, or a frame other than the ack, has arrived."""
        self._socket = socket
        # The smaller limit of both sides; the daemon closes the connection for a longer frame.
        self._max_frame_bytes = min(max_message_size, ack.limits.max_frame_bytes if ack.limits else MAX_FRAME_BYTES)
        # Close code and reason, once the connection has ended.
        self._end: tuple[int, str] | None = None
        self._reader: asyncio.Task[None] | None = None
        self._heartbeat: asyncio.Task[None] | None = None

    @classmethod
    async def connect(
        cls, endpoint: DaemonEndpoint, hello: bytes, *, tls_context: ssl.SSLContext | None, max_message_size: int
    ) -> Self:
        """Connects and exchanges the hello.

        Raises:
            ConnectionFailedError: no daemon listens, or the daemon refused. The message says which, and how to fix it.
        """
        socket = await open_socket(endpoint, tls_context=tls_context, max_message_size=max_message_size)
        try:
            ack = await exchange_hello(socket, endpoint, hello)
        except BaseException:
            await socket.close()
            raise
        return cls(socket, ack, endpoint, max_message_size)

    def start(self, deliver: Callable[[ServerFrame], None], on_end: Callable[["ClientConnection"], None]) -> None:
        """Starts reading frames. ``on_end`` is called once at the end, unless the event loop itself ends."""

        def ended(reader: asyncio.Task[None]) -> None:
            if reader.cancelled():
                return
            failure = reader.exception()
            if failure is not None:
                _log.error("the reader of %s failed", self.endpoint.url, exc_info=failure)
            on_end(self)

        self._heartbeat = asyncio.create_task(self._run_heartbeat(), name="toold client heartbeat")
        self._reader = asyncio.create_task(self._read(deliver), name="toold client reader")
        self._reader.add_done_callback(ended)

    @property
    def open(self) -> bool:
        return self._end is None and self._socket.state is State.OPEN

    @property
    def accepts_calls(self) -> bool:
        return not self.going_away and self.open

    @property
    def close_code(self) -> int:
        """The WebSocket close code; 1006 until it is known."""
        return self._end[0] if self._end else 1006

    async def send(self, frame: bytes) -> None:
        """Sends a frame. If the connection ends meanwhile, only ``on_end`` reports it.

        Raises:
            InvalidArgumentsError: the frame exceeds the limit.
            ConnectionLostError: the connection had already ended; nothing was sent.
        """
        if len(frame) > self._max_frame_bytes:
            raise InvalidArgumentsError(
                f"The call has {len(frame):,} bytes and the limit of a frame is {self._max_frame_bytes:,}; "
                "send less, or name a file for the tool to read."
            )
        if not self.open:
            raise self.lost("no")
        try:  # noqa: SIM105 - hot path: contextlib.suppress costs more than the rest
            await self._socket.send(frame, text=True)
        except websockets.ConnectionClosed:
            pass

    async def close(self) -> None:
        """Closes the connection, cleanly if the peer cooperates. Returns when the connection's tasks have ended."""
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._socket.close()
        except TimeoutError:  # the peer does not read the close frame
            self._socket.transport.abort()
        tasks = {task for task in (self._reader, self._heartbeat) if task is not None}
        if tasks:
            await asyncio.wait(tasks)

    def lost(self, executed: Executed) -> ConnectionLostError:
        """Returns the error of a call whose connection, this one, was lost."""
        code, reason = self._end or (1006, "")
        message = f"the connection to {self.endpoint.url} was lost: {describe_close(code, reason)}"
        if executed != "no":
            message += "; calls in flight may have run"
        return ConnectionLostError(message, executed=executed, close_code=code)

    async def _read(self, deliver: Callable[[ServerFrame], None]) -> None:
        try:
            while True:
                frame = read_frame(await self._socket.recv(decode=False))
                self.confirmed = True
                if isinstance(frame, GoingAway):
                    self.going_away = True
                elif frame is not None:
                    deliver(frame)
        except websockets.ConnectionClosed as exc:
            self._end = self._end or closed_with(exc)
            _log.info("%s: %s", self.endpoint.url, describe_close(*self._end))
        finally:
            self._end = self._end or (1006, "")  # without its reader the connection is unusable
            if self._heartbeat is not None:
                self._heartbeat.cancel()
            self._socket.transport.abort()

    async def _run_heartbeat(self) -> None:
        # Replaces the library's keepalive, which can block when it sends a ping to a peer that does not read, and waits
        # for a dead peer to close. It also times out while a large answer delays the pong on a slow line; after a
        # resume, the same answer would be redelivered, and time out again.
        pause_s = PING_INTERVAL_S
        with suppress(websockets.ConnectionClosed):
            while True:
                await asyncio.sleep(pause_s)
                self._socket.received_data = False
                try:
                    async with asyncio.timeout(PING_TIMEOUT_S):
                        await (await self._socket.ping())
                except TimeoutError:
                    if not self._socket.received_data:
                        self._end = self._end or (CLOSE_NO_PONG, f"no pong within {PING_TIMEOUT_S:g} s")
                        self._socket.transport.abort()
                        return
                    pause_s = 0.0
                else:
                    self.confirmed = True
                    pause_s = PING_INTERVAL_S
