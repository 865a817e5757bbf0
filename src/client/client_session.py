"""The client's side of a session, which outlives its connections.

It tracks pending answers, the resume key, answers to acknowledge, and calls to cancel. ``client_link`` attaches
connections and reports how they end:

    adopt ──▶ suspend ──▶ adopt …      connection lost; the next one resumes the session, or starts another
        └───▶ end                      the session is lost: pending requests fail
"""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from ..protocol.error_codes import CallCancelledError, InvalidArgumentsError, ResultExpiredError
from ..protocol.frames import (
    CallStatusRes,
    CallToolRes,
    CancelRes,
    Notification,
    QuestionClosed,
    QuestionFrame,
    ServerFrame,
    ToolsChanged,
)
from ..protocol.tool_call import CallStatus, RequestId
from . import client_frames
from .client_connection import ClientConnection
from .client_errors import ConnectionLostError
from .client_frames import CallFrame
from .pending_answers import OnNotification, OnToolsChanged, PendingAnswer, PendingAnswers, run_callback
from .question_callbacks import CallQuestionState, QuestionCallbacks

_log = logging.getLogger(__name__)

STATUS_TIMEOUT_S: Final = 10.0
"""The timeout of ``call_status``, which the daemon answers immediately."""
ACKNOWLEDGE_COUNT: Final = 64
ACKNOWLEDGE_AFTER_S: Final = 0.5
"""Answers are acknowledged in batches of this number, or after this time."""
FLUSH_S: Final = 1.0
"""The time for sending pending frames before a clean close."""


class ClientSession:
    """The client's state of a session. ``answers`` are the requests in flight."""

    def __init__(
        self, on_tools_changed: OnToolsChanged | None = None, on_notification: OnNotification | None = None
    ) -> None:
        self.answers = PendingAnswers()
        self._questions = QuestionCallbacks(self._questions_of, self._send_soon)
        self.key: str | None = None
        """The resume key for the next hello; None without a session to resume."""
        self._attempts = 0
        self._connection: ClientConnection | None = None
        # Cancels that may not have arrived; they are resent on the next connection until the calls are answered.
        self._cancelling: set[str] = set()
        # Received answers that are not acknowledged yet, and the timer that acknowledges them.
        self._received: list[str] = []
        self._acknowledge_timer: asyncio.TimerHandle | None = None
        # The pending call_status, whose answer has no id: one at a time.
        self._status: asyncio.Future[Mapping[str, CallStatus]] | None = None
        self._resuming: asyncio.Task[None] | None = None
        # The latest revision of the tool listing, and the callback for changes.
        self._tools_rev: str | None = None
        self._on_tools_changed = on_tools_changed
        self._on_notification = on_notification
        self._follows: dict[str, bytes] = {}
        # Frames being sent that no caller waits for.
        self._background: set[asyncio.Task[None]] = set()

    # --- connections -------------------------------------------------------------------------------------------------

    def adopt(self, connection: ClientConnection) -> None:
        """Continues the session on this connection. If the daemon did not resume it, earlier calls are lost."""
        if self.key is not None and not connection.ack.resumed:
            _log.warning("%s: the session could not be resumed; a new one was started", connection.endpoint.url)
            self.end(
                lambda: ConnectionLostError(
                    f"the daemon at {connection.endpoint.url} no longer knows the session, so its answers are "
                    "lost; calls in flight may have run",
                    executed="maybe",
                )
            )
        self.key = connection.ack.resume_key
        self._connection = connection
        self._note_tools_rev(connection.ack.tools_rev)
        for frame in self._follows.values():
            self._in_background(partial(connection.send, frame))
        waiting = [(pending, pending.call) for pending in self.answers if pending.call and pending.sent]
        if waiting or self._cancelling or self._received:
            self._resuming = self._in_background(partial(self._resume_calls, connection, waiting))

    def next_connection_number(self) -> int:
        """Returns a higher number for each attempt to connect, so that the daemon refuses attempts that arrive late."""
        self._attempts += 1
        return self._attempts

    def suspend(self, make_error: Callable[[], Exception]) -> None:
        """Handles a lost connection: requests that cannot wait for the next one fail."""
        self._detach()
        for waiting in self.answers:
            call = waiting.call
            if call is None or (waiting.sent and not (call.survives_reconnect and self.key is not None)):
                waiting.answer.set_exception(make_error())

    def end(self, make_error: Callable[[], Exception]) -> None:
        """Ends the session. Calls that were never sent stay pending, for another session."""
        self.key = None
        self._cancelling.clear()
        self._received.clear()
        self.suspend(make_error)

    async def flush(self) -> None:
        """Sends pending frames before a clean close, for at most one second."""
        self._acknowledge()
        if self._background:
            await asyncio.wait(self._background, timeout=FLUSH_S)

    def _detach(self) -> None:
        self._connection = None
        self._stop_timer()
        if self._resuming is not None:
            self._resuming.cancel()
            self._resuming = None

    async def _resume_calls(
        self, connection: ClientConnection, waiting: Sequence[tuple[PendingAnswer, CallFrame]]
    ) -> None:
        """Continues earlier calls: the daemon redelivers answers, and the status of the rest is queried."""
        if self._received:
            await connection.send(self._acknowledge_frame())
        for request_id in tuple(self._cancelling):
            await connection.send(client_frames.request_frame("cancel", request_id))
        waiting = [
            (pending, call) for pending, call in waiting if pending.open
        ]  # some answers were redelivered already
        if not waiting:
            return
        known = await self._ask_status(connection, [pending.request_id for pending, _ in waiting])
        for pending, call in waiting:
            status = known.get(pending.request_id, "unknown")
            if pending.open and status == "expired":
                pending.answer.set_exception(ResultExpiredError())
            elif pending.open and status == "unknown" and pending.request_id not in self._cancelling:
                await _resend(connection, pending, call)

    async def _ask_status(self, connection: ClientConnection, request_ids: Sequence[str]) -> Mapping[str, CallStatus]:
        """Returns the status of these calls; empty if there is no answer, which is safe because no call runs twice."""
        self._status = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(STATUS_TIMEOUT_S):
                await connection.send(client_frames.request_ids_frame("call_status", request_ids))
                return await self._status
        except TimeoutError:
            return {}
        finally:
            self._status = None

    def follow_again(self, name: str, arguments: Mapping[str, Any] | None) -> None:
        """Remembers subscriptions of calls of resource methods, because each new connection must subscribe again."""
        uri = str((arguments or {}).get("uri"))
        if name == "resources/unsubscribe":
            self._follows.pop(uri, None)
        elif name in {"resources/subscribe", "logging/setLevel"} and self._on_notification is not None:
            key = uri if name == "resources/subscribe" else name
            self._follows[key] = client_frames.call_tool_frame(uuid.uuid4().hex, name, arguments)

    # --- received frames ---------------------------------------------------------------------------------------------

    def deliver(self, frame: ServerFrame) -> None:
        """Passes a frame to its waiter."""
        match frame:
            case CallToolRes():
                self.answers.deliver(frame)
                if self.key is not None:
                    self._received_answer(str(frame.request_id))
            case CancelRes():
                self._cancelling.discard(str(frame.request_id))
                self.answers.deliver(frame)
            case CallStatusRes():
                if self._status is not None and not self._status.done():
                    self._status.set_result(frame.calls)
            case QuestionFrame():
                self._questions.ask(frame)
            case QuestionClosed():
                self._questions.close(frame)
            case ToolsChanged():
                self._note_tools_rev(frame.rev)
            case Notification():
                self._notify(frame)
            case _:
                self.answers.deliver(frame)

    def _notify(self, frame: Notification) -> None:
        if self._on_notification is not None:
            run_callback(self._on_notification, frame.method, frame.params)

    def _note_tools_rev(self, rev: str | None) -> None:
        """Compares the revision of the tool listing, from each hello and each change, with the last one."""
        if rev is None:
            return
        known, self._tools_rev = self._tools_rev, rev
        if known not in {None, rev} and self._on_tools_changed is not None:
            run_callback(self._on_tools_changed, rev)

    def _received_answer(self, request_id: str) -> None:
        """Schedules the acknowledgement of an answer, whether or not a caller waited for it."""
        self._cancelling.discard(request_id)
        self._received.append(request_id)
        if len(self._received) >= ACKNOWLEDGE_COUNT:
            self._acknowledge()
        elif self._acknowledge_timer is None:
            self._acknowledge_timer = asyncio.get_running_loop().call_later(ACKNOWLEDGE_AFTER_S, self._acknowledge)

    def _acknowledge(self) -> None:
        if self._received and self._connection is not None:
            self._in_background(partial(self._connection.send, self._acknowledge_frame()))

    def _acknowledge_frame(self) -> bytes:
        self._stop_timer()
        received, self._received = self._received, []
        return client_frames.request_ids_frame("acknowledge", received)

    def _stop_timer(self) -> None:
        if self._acknowledge_timer is not None:
            self._acknowledge_timer.cancel()
            self._acknowledge_timer = None

    # --- sent frames -------------------------------------------------------------------------------------------------

    def abandon(self, waiting: PendingAnswer) -> None:
        """Cancels a call that no caller waits for any longer, now or after the next resume."""
        if waiting.sent and (waiting.open or waiting.answer.cancelled()):
            self._send_cancel(waiting.request_id)

    def cancel(self, waiting: PendingAnswer) -> None:
        """Cancels this call; its waiter gets its one answer. A call that was never sent ends at once."""
        if waiting.sent:
            self._send_cancel(waiting.request_id)
        else:
            waiting.answer.set_exception(
                CallCancelledError("The call was cancelled before it was sent.", executed="no")
            )

    def _send_cancel(self, request_id: str) -> None:
        if self.key is not None:
            self._cancelling.add(request_id)
        if self._connection is not None:
            self._in_background(partial(self._connection.send, client_frames.request_frame("cancel", request_id)))

    def _questions_of(self, request_id: RequestId) -> CallQuestionState | None:
        waiting = self.answers.open_request(request_id)
        return None if waiting is None else waiting.questions

    def _send_soon(self, frame: bytes) -> None:
        if self._connection is not None:
            self._in_background(partial(self._connection.send, frame))

    def _in_background(self, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        async def run() -> None:
            with suppress(ConnectionLostError):  # resent on the next connection
                await work()

        task = asyncio.create_task(run(), name="toold client send")
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task


async def _resend(connection: ClientConnection, waiting: PendingAnswer, call: CallFrame) -> None:
    try:
        await connection.send(call.frame(asyncio.get_running_loop().time()))
    except InvalidArgumentsError as error:  # the daemon now has a smaller frame limit
        waiting.answer.set_exception(error)
