"""One open connection to the daemon, from the hello to the close: frames out, frames in, and a heartbeat.

What outlives it (who waits for which answer, the resume key) is ``session``'s; when the next is tried is ``link``'s.
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
from .socket_opening import CLOSE_TIMEOUT_S, OpenSocket, greet, open_socket

_log = logging.getLogger(__name__)

PING_INTERVAL_S: Final = 20.0
PING_TIMEOUT_S: Final = 20.0
"""The heartbeat, as docs/protocol.md has it for both sides: a peer that vanished is noticed within their sum."""


class ClientConnection:
    """An open connection that was greeted. It reads nothing until it is started."""

    def __init__(self, socket: OpenSocket, ack: HelloAck, endpoint: DaemonEndpoint, max_message_size: int) -> None:
        self.ack = ack
        self.endpoint = endpoint
        self.leaving = False
        """The daemon said that it goes away: it answers what runs and takes nothing new."""
        self.proven = False
        """A frame came after the ack, or a pong: the daemon does more than greet."""
        self._socket = socket
        # No frame may be longer than either side takes; the daemon would close the connection over it.
        self._max_frame_bytes = min(max_message_size, ack.limits.max_frame_bytes if ack.limits else MAX_FRAME_BYTES)
        # Why the connection ended, once it has.
        self._end: tuple[int, str] | None = None
        self._reader: asyncio.Task[None] | None = None
        self._heartbeat: asyncio.Task[None] | None = None

    @classmethod
    async def connect(
        cls, endpoint: DaemonEndpoint, hello: bytes, *, tls_context: ssl.SSLContext | None, max_message_size: int
    ) -> Self:
        """Connect and say hello.

        Raises:
            ConnectionFailedError: no daemon there, or it refused; the message says which and what to do.
        """
        socket = await open_socket(endpoint, tls_context=tls_context, max_message_size=max_message_size)
        try:
            ack = await greet(socket, endpoint, hello)
        except BaseException:
            await socket.close()
            raise
        return cls(socket, ack, endpoint, max_message_size)

    def start(self, deliver: Callable[[ServerFrame], None], on_end: Callable[["ClientConnection"], None]) -> None:
        """Read frames until the end, which is told once; not where the event loop itself ends."""

        def ended(reader: asyncio.Task[None]) -> None:
            if reader.cancelled():
                return
            mistake = reader.exception()
            if mistake is not None:
                _log.error("the reader of %s failed", self.endpoint.url, exc_info=mistake)
            on_end(self)

        self._heartbeat = asyncio.create_task(self._beat(), name="toold client heartbeat")
        self._reader = asyncio.create_task(self._read(deliver), name="toold client reader")
        self._reader.add_done_callback(ended)

    @property
    def open(self) -> bool:
        return self._end is None and self._socket.state is State.OPEN

    @property
    def takes_calls(self) -> bool:
        return not self.leaving and self.open

    @property
    def close_code(self) -> int:
        """WebSocket's close code; 1006 until it is known."""
        return self._end[0] if self._end else 1006

    async def send(self, frame: bytes) -> None:
        """Send a frame. Where the connection ends meanwhile, its end is all that tells so.

        Raises:
            InvalidArgumentsError: the frame is longer than the daemon takes.
            ConnectionLostError: the connection had ended before, so nothing was sent.
        """
        if len(frame) > self._max_frame_bytes:
            raise InvalidArgumentsError(
                f"The call is {len(frame):,} bytes long and a frame holds {self._max_frame_bytes:,} at most; "
                "send less, or name a file for the tool to read."
            )
        if not self.open:
            raise self.lost("no")
        try:  # noqa: SIM105 - on every call's road, where contextlib.suppress costs more than the rest of this
            await self._socket.send(frame, text=True)
        except websockets.ConnectionClosed:
            pass

    async def close(self) -> None:
        """Close, in good order where the peer lets us; return when nothing of it is left."""
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._socket.close()
        except TimeoutError:  # from a peer that reads nothing, not even the close
            self._socket.transport.abort()
        tasks = {task for task in (self._reader, self._heartbeat) if task is not None}
        if tasks:
            await asyncio.wait(tasks)

    def lost(self, executed: Executed) -> ConnectionLostError:
        """What to raise for a call, given whether it was sent."""
        code, reason = self._end or (1006, "")
        message = f"the connection to {self.endpoint.url} is gone: {describe_close(code, reason)}"
        if executed != "no":
            message += "; what was in flight may have run"
        return ConnectionLostError(message, executed=executed, close_code=code)

    async def _read(self, deliver: Callable[[ServerFrame], None]) -> None:
        try:
            while True:
                frame = read_frame(await self._socket.recv(decode=False))
                self.proven = True
                if isinstance(frame, GoingAway):
                    self.leaving = True
                elif frame is not None:
                    deliver(frame)
        except websockets.ConnectionClosed as exc:
            self._end = self._end or closed_with(exc)
            _log.info("%s: %s", self.endpoint.url, describe_close(*self._end))
        finally:
            self._end = self._end or (1006, "")  # without its reader a connection is none, whatever ended it
            if self._heartbeat is not None:
                self._heartbeat.cancel()
            self._socket.transport.abort()

    async def _beat(self) -> None:
        # Not the library's own: that one waits without a bound to send its ping to a peer that reads nothing, waits
        # for the close of a peer that is gone, and takes a large answer on a slow line, behind which the pong comes,
        # for silence: after a resume the same answer would come again, and so on.
        pause_s = PING_INTERVAL_S
        with suppress(websockets.ConnectionClosed):
            while True:
                await asyncio.sleep(pause_s)
                self._socket.heard = False
                try:
                    async with asyncio.timeout(PING_TIMEOUT_S):
                        await (await self._socket.ping())
                except TimeoutError:
                    if not self._socket.heard:
                        self._end = self._end or (CLOSE_NO_PONG, f"no pong within {PING_TIMEOUT_S:g} s")
                        self._socket.transport.abort()
                        return
                    pause_s = 0.0
                else:
                    self.proven = True
                    pause_s = PING_INTERVAL_S
