"""One WebSocket connection: converts frames to calls, and results to frames. It enforces no limits and no timeouts."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final
from uuid import uuid4

import structlog
from websockets.asyncio.server import ServerConnection

from ...protocol.authorization import Authorization
from ...protocol.error_codes import CallError, ProtocolError
from ...protocol.frame_decoding import (
    FrameRefusal,
    decode_client_frame,
    decode_long_frame,
    refuse_binary,
    request_id_of,
    request_key,
    tool_call,
)
from ...protocol.frames import (
    Acknowledge,
    AnswerQuestion,
    CallStatusQuery,
    CallStatusRes,
    CallTool,
    CallToolAck,
    Cancel,
    CancelRes,
    ClientFrame,
    ErrorFrame,
    GoingAway,
    Health,
    HealthRes,
    Hello,
    HelloAck,
    ListTools,
    ListToolsRes,
    Notification,
    Ping,
    Pong,
    ServerFrame,
    ToolsChanged,
    encode,
)
from ...protocol.handshake import HelloAccepted
from ...protocol.json_pieces import LONG_BYTES
from ...protocol.long_texts import is_quick
from ...protocol.questions.question_table import OpenQuestion
from ...protocol.session_calls import PendingResult
from ...protocol.tool_call import (
    AnswerPiece,
    Principal,
    Progress,
    RequestId,
    ToolCall,
    ToolResult,
)
from ...tools import ToolsetView, is_long
from ..dispatch import (
    UNCOUNTED_BYTES,
    Router,
    RunningCall,
    Session,
    prepared,
    replayed,
)
from ..observability.logging_setup import shown_content
from ..off_loop import off_loop
from ..resource_host import ResourceHost
from .call_frames import answer_frame, both_ids, former_id
from .followed_resources import FollowedResources
from .large_frames import LARGE_BYTES
from .peer_connection import BinaryMessage, PeerConnection
from .pending_reports import PendingReports
from .websocket_questions import closed_frame, question_frame, take_answer

_log = structlog.get_logger(__name__)

_TURN_KIB: Final = 16
"""The other connections get their turn after frames of this total size. Each frame counts as 1 KiB more than its
size."""


class WebSocketConnection:
    """A connection after its hello; the ``CallPort`` of all its calls."""

    __slots__ = (
        *("__weakref__", "_acks", "_health", "_hello", "_host", "_lapsed", "_may_answer", "_on_lapse"),
        *("_redelivery", "_reports", "_resources", "_router", "_session", "_socket", "_stopped_reading"),
        *("_tools_changed", "_tools_rev"),
    )

    def __init__(
        self,
        socket: PeerConnection,
        hello: HelloAccepted,
        session: Session,
        router: Router,
        health: Callable[[Principal], dict[str, Any]],
        resources: ResourceHost,
        may_answer: Callable[[], bool] | None = None,
        on_lapse: Callable[["WebSocketConnection"], None] = lambda _: None,
    ) -> None:
        """``may_answer``: in a cluster, whether this node may still handle frames of sessions that another node could
        resume. ``on_lapse`` is called when it no longer may; the connection then handles no more frames and is to be
        closed."""
        self._may_answer = may_answer if session.resumable else None
        self._on_lapse = on_lapse
        self._lapsed = False
        self._socket = socket
        self._hello = hello
        self._acks = "ack" in hello.features
        self._session = session
        self._router = router
        self._health = health
        # Created with the first report, as many connections have none.
        self._reports: PendingReports | None = None
        # The listing of the last notification to the client, and whether another notification is due.
        self._tools_rev = self._view().rev
        self._tools_changed = False
        self._host = resources
        # Created when it is first needed, as few connections need it.
        self._resources: FollowedResources | None = None
        # Redelivers unacknowledged answers.
        self._redelivery: asyncio.Task[None] | None = None
        self._stopped_reading = False

    def __repr__(self) -> str:
        return f"<WebSocketConnection {self._session.label}>"

    def begin(self, ack: HelloAck, missed: list[PendingResult]) -> None:
        """Sends the ``ack``, before all other frames, and then the ``missed`` answers. ``serve`` must follow."""
        if "resources" in self._hello.features:
            self._needed_resources().begin()
        self._socket.send_at_once(encode(ack))
        if missed:
            self._redelivery = asyncio.create_task(self._redeliver(missed))

    async def serve(self) -> None:
        """Reads frames until the connection ends. Its calls then continue or are cancelled, as each requested.

        Raises:
            ConnectionClosed: always, when the connection ends.
        """
        try:
            receive = self._socket.receive
            turn = _TURN_KIB
            while True:
                data = await receive()
                size = len(data)
                if not self._stopped_reading and (self._may_answer is None or not self.lapse()):
                    short = size <= LONG_BYTES and not isinstance(data, BinaryMessage)
                    frame = decode_client_frame(data) if short else await _decoded(data)
                    if isinstance(frame, CallTool):  # most frames
                        if (rest := self._call(frame, size)) is not None:
                            await rest
                    else:
                        await self._receive(frame)
                    turn -= 1 + (size >> 10)
                    if turn <= 0:  # `receive` does not wait if more frames have arrived
                        turn = _TURN_KIB
                        await asyncio.sleep(0)
                if size > LARGE_BYTES:
                    del data
                    self._socket.frame_handled()
        finally:
            self._router.disconnect(self._session, self)
            if self._resources is not None:
                self._resources.close()
            if self._reports is not None:
                self._reports.close()
            if self._redelivery is not None:
                self._redelivery.cancel()

    @property
    def access(self) -> Authorization:
        """The client's authorization."""
        return self._hello.access

    def stop_reading(self) -> ServerConnection:
        """Ignores further frames: another connection has taken over the session, or the token is no longer valid.
        Returns the socket, to be closed.
        """
        self._stopped_reading = True
        return self._socket

    def lapse(self) -> bool:
        """Stops handling frames if this node may no longer answer for the session. Returns whether it stopped."""
        if self._lapsed:
            return True
        if self._may_answer is None or self._may_answer():
            return False
        self._lapsed = True
        self._on_lapse(self)
        return True

    async def going_away(self, deadline_ms: float) -> None:
        """Notifies the client, if it has the feature ``going_away``, that the daemon is shutting down."""
        if "going_away" in self._hello.features:
            await self._send(GoingAway(deadline_ms))

    def tools_changed(self) -> None:
        """Notifies the client, if it has the feature ``tools_changed``, when its tool listing changed. Never blocks; a
        slow reader gets only the last of several changes."""
        if "tools_changed" in self._hello.features and self._view().rev != self._tools_rev:
            self._tools_changed = True
            self._needed_reports().wake()

    def _view(self) -> ToolsetView:
        return self._router.catalog.view(self._session.toolset)

    # --- frames in ---------------------------------------------------------------------------------------------------

    async def _receive(self, frame: ClientFrame | FrameRefusal) -> None:  # noqa: C901 - one case per frame
        match frame:
            case FrameRefusal():
                await self._refuse(frame)
            case Cancel():
                await self._cancel(frame)
            case CallStatusQuery():
                await self._send_states(frame.request_ids)
            case AnswerQuestion():
                if refusal := take_answer(self._router.questions, self._session, frame):
                    await self._send(refusal)
            case Acknowledge():
                self._router.acknowledge(self._session, frame.request_ids)
            case ListTools():
                self._router.on_listing()
                tools = self._view()
                await self._send(ListToolsRes(tools.infos, tools.rev, *both_ids(frame)))
            case Ping():
                await self._send(Pong(*both_ids(frame)))
            case Health():
                await self._send(HealthRes(self._health(self._session.principal), *both_ids(frame)))
            case Hello():
                error = ProtocolError("hello was already sent; open another connection for another session.")
                await self._send(ErrorFrame(error.to_tool_error()))

    def _call(self, frame: CallTool, size: int) -> Awaitable[None] | None:
        """Submits a call: at once, or in the awaitable that it returns."""
        request = tool_call(frame, size, make_id=_make_request_id)
        if isinstance(request, FrameRefusal):
            return self._refuse(request)
        if "/" in request.name:  # a method about resources and prompts
            outcome = self._needed_resources().submit(self._router, self._session, request, self)
        elif size > LONG_BYTES:
            return self._call_prepared(request)
        else:
            outcome = self._router.submit(self._session, request, self)
        return self._response(request, outcome)

    async def _call_prepared(self, request: ToolCall) -> None:
        ready = await prepared(self._router.catalog, self._session, request)
        if self._stopped_reading:
            return
        if (response := self._response(request, self._router.submit(self._session, ready, self))) is not None:
            await response

    def _response(self, request: ToolCall, outcome: RunningCall | ToolResult | None) -> Awaitable[None] | None:
        """Sends the immediate response: an acknowledgement if the client wants one, or the result of a call that does
        not run.
        """
        if isinstance(outcome, RunningCall):
            if not self._acks:
                return None  # the usual case
            notice = "timeout_ms was lowered to the maximum" if outcome.timeout_lowered else None
            return self._send(CallToolAck(request.request_id, True, outcome.timeout_ms, notice, id=former_id(request)))
        if outcome is None:
            return None
        size = self._router.result_bytes(self._session, request.request_id)
        return self._send_stored(request.request_id, request.echo_id, outcome, size)

    async def _refuse(self, refusal: FrameRefusal) -> None:
        if refusal.call:
            request_id = refusal.request_id if refusal.request_id is not None else _make_request_id()
            result = self._router.refuse_frame(self._session, request_id, refusal.error)
            await self._send_bytes(self._answer(request_id, refusal.echo_id, result))
        else:
            _log.info("frame refused", code=refusal.error.code, reason=shown_content(refusal.error.message))
            await self._send(ErrorFrame(refusal.error, refusal.request_id))

    async def _send_states(self, request_ids: Sequence[RequestId]) -> None:
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

    # --- CallPort: answers out ----------------------------------------------------------------------------------------

    def render(self, running: RunningCall, result: ToolResult) -> bytes:
        call = running.request
        if result.error is None:
            return answer_frame(call.request_id, call.echo_id, result)
        return self._answer(call.request_id, call.echo_id, result)

    def deliver(self, running: RunningCall, answer: bytes) -> Awaitable[None] | None:
        if self._reports is not None and self._reports.end(running):
            return self._deliver_after_chunks(self._reports, running, answer)
        return None if self._is_sent_at_once(answer) else self._socket.send_in_turn(answer)

    async def _deliver_after_chunks(self, reports: PendingReports, running: RunningCall, answer: bytes) -> None:
        await reports.send_chunks(running)
        await self._send_bytes(answer)

    def progress(self, running: RunningCall, progress: Progress) -> bool:
        # A plain client reads only while it waits for an answer, so frequent progress would fill its buffer.
        if self._hello.plain:
            return False
        self._needed_reports().progress(running, progress)
        return True

    def chunk(self, running: RunningCall, text: str) -> None:
        self._needed_reports().chunk(running, text)

    def piece(self, running: RunningCall, piece: AnswerPiece) -> None:
        pass  # all chunks together are the answer's text

    def question(self, running: RunningCall, entry: OpenQuestion) -> None:
        if "questions" in self._hello.features:
            self._needed_reports().question(question_frame(running, entry))

    def question_closed(self, running: RunningCall, entry: OpenQuestion) -> None:
        if "questions" in self._hello.features:
            self._needed_reports().question(closed_frame(running, entry))

    def heartbeat(self, calls: Sequence[RunningCall], now: float) -> None:
        if self._hello.plain:
            # The shim of EX-AI, which sends `id`, treats any next frame as the answer.
            calls = [call for call in calls if not call.request.echo_id][:1]
        reports = self._needed_reports()
        for call in calls:
            reports.heartbeat(call, call.heartbeat(now))

    def _needed_reports(self) -> PendingReports:
        if self._reports is None:
            self._reports = PendingReports(self._send, self._take_notice)
        return self._reports

    def _needed_resources(self) -> FollowedResources:
        if self._resources is None:
            wake = self._needed_reports().wake
            self._resources = FollowedResources(self._host, self._session.principal, self._view, wake)
        return self._resources

    def _take_notice(self) -> ToolsChanged | Notification | None:
        """The next notification that belongs to no call."""
        if self._tools_changed:
            self._tools_rev, self._tools_changed = self._view().rev, False
            return ToolsChanged(self._tools_rev)
        return None if self._resources is None else self._resources.take()

    async def _redeliver(self, missed: list[PendingResult]) -> None:
        """Sends stored answers, oldest first, one after the other."""
        missed.reverse()
        try:
            while missed:
                pending = missed.pop()
                request_id = request_id_of(pending.key)
                # Any other status means that the client has acknowledged the answer in the meantime.
                if self._router.status_of(self._session, request_id) in {"done", "interrupted"}:
                    size = self._router.result_bytes(self._session, request_id)
                    await self._send_stored(request_id, pending.echo_id, replayed(pending.result), size)
        finally:
            missed.clear()  # a task that was cancelled keeps its frame

    async def _send_stored(self, request_id: RequestId, echo_id: bool, result: ToolResult, size: int) -> None:
        """Sends a stored result of ``size`` bytes once the unread answers leave room for it."""
        render = partial(self._answer, request_id, echo_id, result)
        if size <= UNCOUNTED_BYTES:
            await self._send_bytes(render())
            return
        unread = self._router.unread
        await unread.wait_until_fits(self._session, size)
        with unread.holding(self._session, size):
            await self._send_bytes(await off_loop(render) if is_long(result.value) else render())

    def _answer(self, request_id: RequestId, echo_id: bool, result: ToolResult) -> bytes:
        if result.error is None:
            return answer_frame(request_id, echo_id, result)
        session = self._session
        form = self._router.catalog.result_text(session.toolset, session.result_text, former=session.former)
        return answer_frame(request_id, echo_id, result, form)

    async def _send(self, frame: ServerFrame) -> None:
        await self._send_bytes(encode(frame))

    async def _send_bytes(self, data: bytes) -> None:
        if not self._is_sent_at_once(data):
            await self._socket.send_in_turn(data)

    def _is_sent_at_once(self, data: bytes) -> bool:
        """Sends a frame if it can be sent without waiting. Returns whether it was sent."""
        if self._may_answer is not None and self.lapse():
            return True  # the answer stays stored, and the client gets it when it resumes the session
        return self._socket.send_at_once(data)


async def _decoded(data: bytes) -> ClientFrame | FrameRefusal:
    if isinstance(data, BinaryMessage):
        return refuse_binary()
    return decode_client_frame(data) if is_quick(data) else await off_loop(decode_long_frame, data)


def _make_request_id() -> str:
    return uuid4().hex
