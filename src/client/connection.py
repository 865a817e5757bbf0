"""One open connection to the daemon, from the hello to the close: one reader task, many requests at once.

What is promised across connections (retries, reconnecting) is in ``client``. Resuming a session over a break would
start here too: ``connect`` would send the resume key, and ``Answers`` would outlive its connection.
"""

import asyncio
import logging
import ssl
import uuid
from contextlib import suppress
from typing import Final, Self, TypeVar

import websockets
from websockets.asyncio.client import ClientConnection
from websockets.protocol import State

from ..protocol.calls import MAX_FRAME_BYTES
from ..protocol.errors import CallTimeoutError, Executed, InvalidArgumentsError
from ..protocol.frames import CallToolRes, HelloAck
from . import requests
from .answers import Answer, Answers, OnChunk, OnProgress, answered_with, read_frame
from .endpoint import Endpoint
from .errors import ConnectionLostError, closed_with, describe_close
from .opening import greet, open_socket

_log = logging.getLogger(__name__)

ASK_TIMEOUT_S: Final = 10.0
"""For what the daemon answers at once: list_tools, ping, health, cancel."""

A = TypeVar("A")


class Connection:
    """An open connection that was greeted. Its end fails every request in flight at once."""

    def __init__(self, socket: ClientConnection, ack: HelloAck, endpoint: Endpoint, max_message_size: int) -> None:
        self.ack = ack
        self.endpoint = endpoint
        self._socket = socket
        # No frame may be longer than either side takes; the daemon would close the connection over it.
        self._max_frame_bytes = min(max_message_size, ack.limits.max_frame_bytes if ack.limits else MAX_FRAME_BYTES)
        self._answers = Answers()
        # Why the connection ended, once it has.
        self._end: tuple[int, str] | None = None
        # Cancels on their way for callers that wait no longer.
        self._farewells: set[asyncio.Task[None]] = set()
        self._reader = asyncio.create_task(self._read(), name="toold client reader")

    @classmethod
    async def connect(
        cls, endpoint: Endpoint, hello: bytes, *, tls_context: ssl.SSLContext | None, max_message_size: int
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

    @property
    def open(self) -> bool:
        return self._end is None and self._socket.state is State.OPEN

    @property
    def close_code(self) -> int | None:
        """WebSocket's close code once the connection has ended."""
        return self._end[0] if self._end else None

    async def call(
        self,
        request_id: str,
        frame: bytes,
        *,
        wait_s: float | None,
        on_progress: OnProgress | None = None,
        on_chunk: OnChunk | None = None,
    ) -> CallToolRes:
        """Send a call and wait for its terminal answer, ``wait_s`` seconds at most.

        Whoever stops waiting (a time-out, a cancelled task) has the daemon cancel the call.

        Raises:
            CallError: the daemon's error frame, or CallTimeoutError after ``wait_s``.
            ConnectionLostError: the connection ended; ``executed`` says whether the call was sent.
        """
        if len(frame) > self._max_frame_bytes:
            raise InvalidArgumentsError(
                f"The call is {len(frame):,} bytes long and a frame holds {self._max_frame_bytes:,} at most; "
                "send less, or name a file for the tool to read."
            )
        with self._answers.expect(request_id, on_progress=on_progress, on_chunk=on_chunk) as answer:
            try:
                async with asyncio.timeout(wait_s):
                    await self._send(frame)
                    return answered_with(CallToolRes, await answer)
            except TimeoutError as exc:
                self._bid_farewell(request_id)
                message = f"The daemon did not answer within {wait_s:g} s; the call was cancelled and may have run."
                raise CallTimeoutError(message, executed="maybe", transient=False) from exc
            except asyncio.CancelledError:
                self._bid_farewell(request_id)
                raise

    async def ask(self, op: str, kind: type[A]) -> A:
        """Send ``list_tools``, ``ping`` or ``health`` and wait for its kind of answer.

        Raises:
            CallError: what the daemon objected to, or CallTimeoutError after 10 s.
            ConnectionLostError: the connection ended.
        """
        request_id = uuid.uuid4().hex
        with self._answers.expect(request_id) as answer:
            answered = await self._exchange(requests.ask(op, request_id), answer, f"The daemon did not answer {op}")
            return answered_with(kind, answered)

    async def cancel(self, request_id: str) -> Answer:
        """Ask for a call's end and wait for its terminal answer, or for ``cancel_res`` where it does not run.

        Raises: as ``ask``.
        """
        frame, what = requests.ask("cancel", request_id), f"The call {request_id} did not end when it was cancelled"
        running = self._answers.find(request_id)
        if running is not None:
            return await self._exchange(frame, asyncio.shield(running), what)
        with self._answers.expect(request_id) as answer:
            return await self._exchange(frame, answer, what)

    async def close(self) -> None:
        """Close, in good order where the peer lets us; requests in flight fail."""
        if self._farewells:
            await asyncio.wait(self._farewells, timeout=1.0)
        await self._socket.close()
        await self._reader

    async def _exchange(self, frame: bytes, answer: asyncio.Future[Answer], what: str) -> Answer:
        try:
            async with asyncio.timeout(ASK_TIMEOUT_S):
                await self._send(frame)
                return await answer
        except TimeoutError as exc:
            raise CallTimeoutError(f"{what} within {ASK_TIMEOUT_S:g} s.", executed="no") from exc

    async def _send(self, frame: bytes) -> None:
        if not self.open:
            raise self._lost("no")
        try:
            await self._socket.send(frame, text=True)
        except websockets.ConnectionClosed as exc:
            self._end = self._end or closed_with(exc)
            raise self._lost("maybe") from exc

    async def _read(self) -> None:
        try:
            while True:
                frame = read_frame(await self._socket.recv(decode=False))
                if frame is not None:
                    self._answers.deliver(frame)
        except websockets.ConnectionClosed as exc:
            self._end = self._end or closed_with(exc)
            _log.info("%s: %s", self.endpoint.url, describe_close(*self._end))
        finally:
            self._end = self._end or (1006, "")  # without its reader a connection is none, whatever ended it
            self._answers.fail_all(lambda: self._lost("maybe"))

    def _bid_farewell(self, request_id: str) -> None:
        async def farewell() -> None:
            with suppress(ConnectionLostError):  # then the daemon ends the call by its own rules
                await self._send(requests.ask("cancel", request_id))

        task = asyncio.create_task(farewell(), name=f"toold client cancel {request_id}")
        self._farewells.add(task)
        task.add_done_callback(self._farewells.discard)

    def _lost(self, executed: Executed) -> ConnectionLostError:
        code, reason = self._end or (1006, "")
        message = f"the connection to {self.endpoint.url} is gone: {describe_close(code, reason)}"
        if executed != "no":
            message += "; what was in flight may have run"
        return ConnectionLostError(message, executed=executed, close_code=code)
