"""One WebSocket connection: its frames to calls, and its calls' answers to frames. No limits and no time-outs here."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import uuid4

import structlog
from msgspec import UNSET
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from ...protocol.calls import Progress, RequestId, ToolCall, ToolResult
from ...protocol.decoding import Refusal, call_request, decode_client_frame, request_key
from ...protocol.errors import ProtocolError
from ...protocol.frames import (
    CallStatusQuery,
    CallStatusRes,
    CallTool,
    CallToolAck,
    CallToolRes,
    Cancel,
    CancelRes,
    ErrorFrame,
    Forget,
    GoingAway,
    Health,
    HealthRes,
    Hello,
    ListTools,
    ListToolsRes,
    Ping,
    Pong,
    ProgressFrame,
    ServerFrame,
    StreamChunk,
    encode,
)
from ...protocol.handshake import Accepted
from ..dispatch import Router, RunningCall, Session

_log = structlog.get_logger(__name__)

_CHUNK_CHARS: Final = 64 * 1024
"""Of one piece of a streamed answer: as JSON at most six times as many bytes, well within a frame."""


class Connection:
    """A connection after its hello; the ``CallPort`` of every call that came by it."""

    def __init__(
        self,
        socket: ServerConnection,
        standing: Accepted,
        session: Session,
        router: Router,
        health: Callable[[], dict[str, Any]],
    ) -> None:
        self._socket = socket
        self._standing = standing
        self._acks = "ack" in standing.features
        self._session = session
        self._router = router
        self._health = health
        # Calls that came by this connection and are not answered yet, with what their frames carry.
        self._calls: dict[RunningCall, _Addressing] = {}
        # Reports that are still to go out: at most one progress and one joined chunk a call.
        self._progress: dict[RunningCall, Progress] = {}
        self._chunks: dict[RunningCall, list[str]] = {}
        self._reporter: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Connection {self._session.label} calls={len(self._calls)}>"

    async def serve(self) -> None:
        """Read frames until the connection ends, then let its calls go on or end as they asked.

        Raises:
            ConnectionClosed: how it ended.
        """
        receive = self._socket.recv
        try:
            while True:
                await self._receive(await receive())
        finally:
            self._router.leave(self._session, self)
            if self._reporter is not None:
                self._reporter.cancel()

    async def going_away(self, deadline_ms: float) -> None:
        """Tell a client that understands it that the daemon stops."""
        if "going_away" in self._standing.features:
            await self._send(GoingAway(deadline_ms))

    # --- frames in ---------------------------------------------------------------------------------------------------

    async def _receive(self, data: str | bytes) -> None:
        frame = decode_client_frame(data)
        match frame:
            case CallTool():
                await self._call(frame, len(data))
            case Refusal():
                await self._refuse(frame)
            case Cancel():
                await self._cancel(frame)
            case CallStatusQuery():
                known = {str(one): self._router.status_of(self._session, one) for one in frame.request_ids}
                await self._send(CallStatusRes(known))
            case Forget():
                self._session.calls.forget(map(request_key, frame.request_ids))
            case ListTools():
                registry = self._router.registry
                await self._send(ListToolsRes(registry.infos, registry.rev, frame.request_id))
            case Ping():
                await self._send(Pong(frame.request_id))
            case Health():
                await self._send(HealthRes(self._health(), frame.request_id))
            case Hello():
                error = ProtocolError("hello was said already; open another connection for another session.")
                await self._send(ErrorFrame(error.to_tool_error()))

    async def _call(self, frame: CallTool, size: int) -> None:
        request = call_request(frame)
        if isinstance(request, Refusal):
            await self._refuse(request)
            return
        request_id = request.request_id if request.request_id is not None else uuid4().hex
        call = ToolCall(request_id, request.name, request.arguments, request.timeout_ms, size, request.on_disconnect)
        addressing = _Addressing(request_id, request.echo_id)
        outcome = self._router.submit(self._session, call, self)
        if isinstance(outcome, RunningCall):
            self._calls[outcome] = addressing
            if self._acks:
                notice = "timeout_ms was lowered to the maximum" if outcome.timeout_lowered else None
                await self._send(CallToolAck(request_id, True, outcome.timeout_ms, notice, id=addressing.id))
        elif outcome is not None:
            await self._send_bytes(_answer(addressing, outcome))

    async def _refuse(self, refusal: Refusal) -> None:
        if refusal.call:
            request_id = refusal.request_id if refusal.request_id is not None else uuid4().hex
            result = self._router.refuse_frame(self._session, request_id, refusal.error)
            await self._send_bytes(_answer(_Addressing(request_id, refusal.echo_id), result))
        else:
            _log.info("frame refused", code=refusal.error.code, why=refusal.error.message)
            await self._send(ErrorFrame(refusal.error, refusal.request_id))

    async def _cancel(self, frame: Cancel) -> None:
        key = request_key(frame.request_id)
        if not self._router.cancel(self._session, key):
            await self._send(CancelRes(frame.request_id, self._router.status_of(self._session, frame.request_id)))

    # --- answers out: what dispatch asks of a CallPort ----------------------------------------------------------------

    def render(self, running: RunningCall, result: ToolResult) -> bytes:
        return _answer(self._calls[running], result)

    async def deliver(self, running: RunningCall, answer: bytes) -> None:
        if self._progress:
            self._progress.pop(running, None)
        try:
            if running in self._chunks:
                await self._send_chunks(running)
            await self._send_bytes(answer)
        finally:
            del self._calls[running]

    def progress(self, running: RunningCall, progress: Progress) -> bool:
        if self._standing.plain:  # it reads only while it waits, and would be flooded
            return False
        self._progress[running] = progress
        self._wake_reporter()
        return True

    def chunk(self, running: RunningCall, text: str) -> None:
        self._chunks.setdefault(running, []).append(text)
        self._wake_reporter()

    def beat(self, running: Sequence[RunningCall], now: float) -> None:
        for call in running[:1] if self._standing.plain else running:
            self._progress.setdefault(call, call.sign_of_life(now))
        self._wake_reporter()

    def _wake_reporter(self) -> None:
        if self._reporter is None or self._reporter.done():
            self._reporter = asyncio.create_task(self._report())

    async def _report(self) -> None:
        """Send what is to be reported. While a reader is behind, reports of one call are joined instead."""
        while self._progress or self._chunks:
            if self._chunks:
                await self._send_chunks(next(iter(self._chunks)))
            else:
                running = next(iter(self._progress))
                await self._send(self._calls[running].report(self._progress.pop(running)))

    async def _send_chunks(self, running: RunningCall) -> None:
        """What one call has streamed since the last time, in frames that fit."""
        text = "".join(self._chunks.pop(running))
        addressing = self._calls[running]
        for start in range(0, len(text), _CHUNK_CHARS):
            await self._send(addressing.chunk(text[start : start + _CHUNK_CHARS]))

    async def _send(self, frame: ServerFrame) -> None:
        await self._send_bytes(encode(frame))

    async def _send_bytes(self, data: bytes) -> None:
        try:  # noqa: SIM105 - on every call's road, where contextlib.suppress costs a twentieth of it
            await self._socket.send(data, text=True)
        except ConnectionClosed:
            pass  # nobody is there to hear it; `serve` sees the end and settles what runs


class _Addressing:
    """How the frames of one call are addressed and counted."""

    __slots__ = ("_chunks", "_reports", "id", "request_id")

    def __init__(self, request_id: RequestId, echo_id: bool) -> None:
        self.request_id = request_id
        self.id = request_id if echo_id else UNSET
        """The older spelling, for clients that used it."""
        self._reports = 0
        self._chunks = 0

    def report(self, progress: Progress) -> ProgressFrame:
        self._reports += 1
        return ProgressFrame(
            self.request_id, self._reports, progress.message, progress.done, progress.total, id=self.id
        )

    def chunk(self, text: str) -> StreamChunk:
        self._chunks += 1
        return StreamChunk(self.request_id, self._chunks, text, id=self.id)


def _answer(addressing: _Addressing, result: ToolResult) -> bytes:
    return encode(
        CallToolRes(
            addressing.request_id,
            result.outputs,
            result.error,
            result.metadata,
            structured=result.structured,
            id=addressing.id,
        )
    )
