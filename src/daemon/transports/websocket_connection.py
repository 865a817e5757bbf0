"""One WebSocket connection: its frames to calls, and its calls' answers to frames. No limits and no time-outs here.

``ABSENT_PORT`` stands in for a connection while a session has none.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import uuid4

import structlog
from msgspec import UNSET, UnsetType
from websockets.asyncio.server import ServerConnection, broadcast
from websockets.exceptions import ConnectionClosed

from ...protocol.authorization import Authorization
from ...protocol.error_codes import CallError, ProtocolError
from ...protocol.frame_decoding import FrameRefusal, decode_client_frame, request_id_of, request_key, tool_call
from ...protocol.frames import (
    Acknowledge,
    CallStatusQuery,
    CallStatusRes,
    CallTool,
    CallToolAck,
    CallToolRes,
    Cancel,
    CancelRes,
    ErrorFrame,
    GoingAway,
    Health,
    HealthRes,
    Hello,
    HelloAck,
    ListTools,
    ListToolsRes,
    Ping,
    Pong,
    ProgressFrame,
    ServerFrame,
    StreamChunk,
    ToolsChanged,
    encode,
)
from ...protocol.handshake import HelloAccepted
from ...protocol.session_calls import PendingResult
from ...protocol.tool_call import Progress, RequestId, ToolCall, ToolResult
from ...serving import BEHIND_BYTES
from ...tools import ToolsetView
from ..dispatch import DisconnectedPort, Router, RunningCall, Session, replayed

_log = structlog.get_logger(__name__)

_CHUNK_CHARS: Final = 64 * 1024
"""Of one piece of a streamed answer: as JSON at most six times as many bytes, well within a frame."""


class WebSocketConnection:
    """A connection after its hello; the ``CallPort`` of every call that came by it."""

    def __init__(
        self,
        socket: ServerConnection,
        hello: HelloAccepted,
        session: Session,
        router: Router,
        health: Callable[[], dict[str, Any]],
    ) -> None:
        self._socket = socket
        self._hello = hello
        self._acks = "ack" in hello.features
        self._session = session
        self._router = router
        self._health = health
        # Reports that are still to go out: at most one progress and one joined chunk a call.
        self._progress: dict[RunningCall, Progress] = {}
        self._chunks: dict[RunningCall, list[str]] = {}
        self._reporter: asyncio.Task[None] | None = None
        # The listing that the client was told of last, and whether it is still to be told of another.
        self._tools_rev = self._tools.rev
        self._tools_changed = False
        # Sends what was missed.
        self._redelivery: asyncio.Task[None] | None = None
        self._silenced = False

    def __repr__(self) -> str:
        return f"<WebSocketConnection {self._session.label}>"

    async def serve(self, ack: HelloAck, missed: list[PendingResult]) -> None:
        """Say the ``ack``, send the answers that were missed, and read frames until the connection ends; then let its
        calls go on or end as they asked. ``missed`` is used up: what is sent is held by nobody but the shelf.

        Raises:
            ConnectionClosed: how it ended.
        """
        try:
            # Nothing is awaited before it, so that it goes out ahead of whatever the session's calls have to say.
            await self._socket.send(encode(ack), text=True)
            if missed:
                self._redelivery = asyncio.create_task(self._redeliver(missed))
            receive = self._socket.recv
            while True:
                data = await receive()
                if not self._silenced:
                    await self._receive(data)
        finally:
            self._router.disconnect(self._session, self)
            missed.clear()
            for task in (self._reporter, self._redelivery):
                if task is not None:
                    task.cancel()

    @property
    def access(self) -> Authorization:
        """By which it was let in."""
        return self._hello.access

    def silence(self) -> ServerConnection:
        """Hear no more frames: another connection has taken the session over, or its token is not good any more.
        Returns the socket, to be closed.
        """
        self._silenced = True
        return self._socket

    async def going_away(self, deadline_ms: float) -> None:
        """Tell a client that understands it that the daemon stops."""
        if "going_away" in self._hello.features:
            await self._send(GoingAway(deadline_ms))

    def tools_changed(self) -> None:
        """There may be other tools now: tell a client that understands it, where its listing is another one. Never
        blocks; of several changes that a slow reader has not been told of, it is told the last."""
        if "tools_changed" in self._hello.features and self._tools.rev != self._tools_rev:
            self._tools_changed = True
            self._wake_reporter()

    @property
    def _tools(self) -> ToolsetView:
        return self._router.catalog.of(self._session.toolset)

    # --- frames in ---------------------------------------------------------------------------------------------------

    async def _receive(self, data: str | bytes) -> None:
        frame = decode_client_frame(data)
        match frame:
            case CallTool():
                await self._call(frame, len(data))
            case FrameRefusal():
                await self._refuse(frame)
            case Cancel():
                await self._cancel(frame)
            case CallStatusQuery():
                await self._tell_states(frame.request_ids)
            case Acknowledge():
                self._router.acknowledge(self._session, frame.request_ids)
            case ListTools():
                tools = self._tools
                await self._send(ListToolsRes(tools.infos, tools.rev, frame.request_id))
            case Ping():
                await self._send(Pong(frame.request_id))
            case Health():
                await self._send(HealthRes(self._health(), frame.request_id))
            case Hello():
                error = ProtocolError("hello was already sent; open another connection for another session.")
                await self._send(ErrorFrame(error.to_tool_error()))

    async def _call(self, frame: CallTool, size: int) -> None:
        request = tool_call(frame, size, make_id=_make_request_id)
        if isinstance(request, FrameRefusal):
            await self._refuse(request)
            return
        outcome = self._router.submit(self._session, request, self)
        if isinstance(outcome, RunningCall):
            if self._acks:
                notice = "timeout_ms was lowered to the maximum" if outcome.timeout_lowered else None
                await self._send(CallToolAck(request.request_id, True, outcome.timeout_ms, notice, id=_id(request)))
        elif outcome is not None:
            await self._send_bytes(_answer(request.request_id, request.echo_id, outcome))

    async def _refuse(self, refusal: FrameRefusal) -> None:
        if refusal.call:
            request_id = refusal.request_id if refusal.request_id is not None else _make_request_id()
            result = self._router.refuse_frame(self._session, request_id, refusal.error)
            await self._send_bytes(_answer(request_id, refusal.echo_id, result))
        else:
            _log.info("frame refused", code=refusal.error.code, why=refusal.error.message)
            await self._send(ErrorFrame(refusal.error, refusal.request_id))

    async def _tell_states(self, request_ids: Sequence[RequestId]) -> None:
        try:
            states = await self._router.statuses_of(self._session, request_ids)
        except CallError as error:
            await self._send(ErrorFrame(error.to_tool_error()))
        else:
            await self._send(CallStatusRes(dict(zip(map(str, request_ids), states, strict=True))))

    async def _cancel(self, frame: Cancel) -> None:
        if self._router.cancel(self._session, request_key(frame.request_id)):
            return
        try:
            (status,) = await self._router.statuses_of(self._session, [frame.request_id])
        except CallError as error:
            await self._send(ErrorFrame(error.to_tool_error(), frame.request_id))
        else:
            await self._send(CancelRes(frame.request_id, status))

    # --- answers out: what dispatch asks of a CallPort ----------------------------------------------------------------

    def render(self, running: RunningCall, result: ToolResult) -> bytes:
        return _answer(running.request.request_id, running.request.echo_id, result)

    async def deliver(self, running: RunningCall, answer: bytes) -> None:
        if self._progress:
            self._progress.pop(running, None)
        if running in self._chunks:
            await self._send_chunks(running)
        await self._send_bytes(answer)

    def progress(self, running: RunningCall, progress: Progress) -> bool:
        if self._hello.plain:  # it reads only while it waits, and would be flooded
            return False
        self._progress[running] = progress
        self._wake_reporter()
        return True

    def chunk(self, running: RunningCall, text: str) -> None:
        self._chunks.setdefault(running, []).append(text)
        self._wake_reporter()

    def heartbeat(self, calls: Sequence[RunningCall], now: float) -> None:
        for call in calls[:1] if self._hello.plain else calls:
            self._progress.setdefault(call, call.heartbeat(now))
        self._wake_reporter()

    def _wake_reporter(self) -> None:
        if self._reporter is None or self._reporter.done():
            self._reporter = asyncio.create_task(self._report())

    async def _report(self) -> None:
        """Send what is to be reported. While a reader is behind, reports of one call are joined instead."""
        while self._progress or self._chunks or self._tools_changed:
            if self._tools_changed:
                self._tools_rev, self._tools_changed = self._tools.rev, False
                await self._send(ToolsChanged(self._tools_rev))
            elif self._chunks:
                await self._send_chunks(next(iter(self._chunks)))
            else:
                running = next(iter(self._progress))
                await self._send(_report(running, self._progress.pop(running)))

    async def _send_chunks(self, running: RunningCall) -> None:
        """What one call has streamed since the last time, in frames that fit."""
        text = "".join(self._chunks.pop(running))
        for start in range(0, len(text), _CHUNK_CHARS):
            await self._send(_chunk(running, text[start : start + _CHUNK_CHARS]))

    async def _redeliver(self, missed: list[PendingResult]) -> None:
        """Send kept answers, the oldest first, each once the one before is on its way."""
        missed.reverse()
        while missed:
            kept = missed.pop()
            request_id = request_id_of(kept.key)
            if self._router.status_of(self._session, request_id) in {"done", "interrupted"}:  # else forgotten meanwhile
                await self._send_bytes(_answer(request_id, kept.echo_id, replayed(kept.result)))

    async def _send(self, frame: ServerFrame) -> None:
        await self._send_bytes(encode(frame))

    async def _send_bytes(self, data: bytes) -> None:
        socket = self._socket
        if socket.transport.get_write_buffer_size() + len(data) <= BEHIND_BYTES:
            broadcast((socket,), data.decode())  # where there is nothing to wait for: takes less than half as long
            return
        try:  # noqa: SIM105 - on every call's road, where contextlib.suppress costs a twentieth of it
            await socket.send(data, text=True)
        except ConnectionClosed:
            pass  # nobody is there to hear it; `serve` sees the end and settles what runs


class AbsentPort(DisconnectedPort):
    """The ``CallPort`` of sessions that no connection holds."""

    def render(self, running: RunningCall, result: ToolResult) -> bytes:
        return _answer(running.request.request_id, running.request.echo_id, result)


ABSENT_PORT: Final = AbsentPort()


def _make_request_id() -> str:
    return uuid4().hex


def _id(call: ToolCall) -> RequestId | UnsetType:
    """The older spelling of the request id, for clients that used it."""
    return call.request_id if call.echo_id else UNSET


def _report(running: RunningCall, progress: Progress) -> ProgressFrame:
    running.reports += 1
    call = running.request
    return ProgressFrame(
        call.request_id, running.reports, progress.message, progress.done, progress.total, id=_id(call)
    )


def _chunk(running: RunningCall, text: str) -> StreamChunk:
    running.chunks += 1
    return StreamChunk(running.request.request_id, running.chunks, text, id=_id(running.request))


def _answer(request_id: RequestId, echo_id: bool, result: ToolResult) -> bytes:
    return encode(
        CallToolRes(
            request_id,
            result.outputs,
            result.error,
            result.metadata,
            structured=result.structured,
            id=request_id if echo_id else UNSET,
        )
    )
