"""The client's side of a session, which outlives its connections.

It knows who waits for which answer, the key to come back with, what the daemon may forget, and which calls nobody waits
for any more. A connection is handed to it by ``link``, which also says how it ended:

    adopt ──▶ suspend ──▶ adopt …      the connection broke; the next one goes on with the session, or begins another
        └───▶ end                      there is no way back to the session: whoever waits, hears of it
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from ..protocol.error_codes import CallCancelledError, InvalidArgumentsError, ResultExpiredError
from ..protocol.frames import CallStatusRes, CallToolRes, CancelRes, ServerFrame, ToolsChanged
from ..protocol.tool_call import CallStatus
from . import client_frames
from .client_connection import ClientConnection
from .client_errors import ConnectionLostError
from .client_frames import CallFrame
from .pending_answers import OnToolsChanged, PendingAnswer, PendingAnswers, tell

_log = logging.getLogger(__name__)

STATUS_TIMEOUT_S: Final = 10.0
"""For ``call_status``, which the daemon answers at once."""
FORGET_COUNT: Final = 64
FORGET_AFTER_S: Final = 0.5
"""Answers that were handed over are forgotten together: when there are so many, or the first is so old."""
FAREWELL_S: Final = 1.0
"""For what is still to be sent before an orderly close."""


class ClientSession:
    """What of a daemon's session this client keeps. ``answers`` are the requests in flight."""

    def __init__(self, on_tools_changed: OnToolsChanged | None = None) -> None:
        self.answers = PendingAnswers()
        self.key: str | None = None
        """What the next hello resumes the session by; None where there is none to go on with."""
        self._connection: ClientConnection | None = None
        # Calls whose cancel may not have arrived: it is sent again over the next connection, until they are answered.
        self._cancelling: set[str] = set()
        # Answers that came and that the daemon still keeps, and the timer that ends their waiting.
        self._received: list[str] = []
        self._forgetting: asyncio.TimerHandle | None = None
        # The answer to call_status, which bears no id: one is asked at a time.
        self._status: asyncio.Future[Mapping[str, CallStatus]] | None = None
        self._going_on: asyncio.Task[None] | None = None
        # Of the listing, as the daemon said last, and who is told when it is another one.
        self._tools_rev: str | None = None
        self._on_tools_changed = on_tools_changed
        # Frames on their way that no caller waits for.
        self._errands: set[asyncio.Task[None]] = set()

    # --- connections come and go -------------------------------------------------------------------------------------

    def adopt(self, connection: ClientConnection) -> None:
        """Go on over this connection. Where the daemon did not resume the session, what it ran is out of reach."""
        if self.key is not None and not connection.ack.resumed:
            _log.warning("%s: the session could not be resumed, this is a new one", connection.endpoint.url)
            self.end(
                lambda: ConnectionLostError(
                    f"the daemon at {connection.endpoint.url} does not know the session any more, so its answers are "
                    "lost; what was in flight may have run",
                    executed="maybe",
                )
            )
        self.key = connection.ack.resume_key
        self._connection = connection
        self._hear_of_tools(connection.ack.tools_rev)
        waiting = [(one, one.call) for one in self.answers if one.call and one.sent]
        if waiting or self._cancelling or self._received:
            self._going_on = self._errand(partial(self._go_on, connection, waiting))

    def suspend(self, make_error: Callable[[], Exception]) -> None:
        """The connection broke. What cannot wait for the next one fails, each with an exception of its own, since a
        traceback belongs to one task."""
        self._detach()
        for waiting in self.answers:
            call = waiting.call
            if call is None or (waiting.sent and not (call.survives_reconnect and self.key is not None)):
                waiting.answer.set_exception(make_error())

    def end(self, make_error: Callable[[], Exception]) -> None:
        """There is no way back. Calls that were never sent are left to their callers, who may send them elsewhere."""
        self.key = None
        self._cancelling.clear()
        self._received.clear()
        self.suspend(make_error)

    async def say_farewell(self) -> None:
        """Send what is still to be said before an orderly close, for a second at most."""
        self._forget()
        if self._errands:
            await asyncio.wait(self._errands, timeout=FAREWELL_S)

    def _detach(self) -> None:
        self._connection = None
        self._stop_timer()
        if self._going_on is not None:
            self._going_on.cancel()
            self._going_on = None

    async def _go_on(self, connection: ClientConnection, waiting: Sequence[tuple[PendingAnswer, CallFrame]]) -> None:
        """What was begun over the last connection: the daemon redelivers answers by itself; the rest is asked for."""
        if self._received:
            await connection.send(self._forget_received())
        for request_id in tuple(self._cancelling):
            await connection.send(client_frames.request_frame("cancel", request_id))
        waiting = [(one, call) for one, call in waiting if one.open]  # some are redelivered already
        if not waiting:
            return
        known = await self._ask_status(connection, [one.request_id for one, _ in waiting])
        for one, call in waiting:
            status = known.get(one.request_id, "unknown")
            if one.open and status == "expired":
                one.answer.set_exception(ResultExpiredError())
            elif one.open and status == "unknown" and one.request_id not in self._cancelling:
                await _send_again(connection, one, call)

    async def _ask_status(self, connection: ClientConnection, request_ids: Sequence[str]) -> Mapping[str, CallStatus]:
        """What the daemon knows of these calls; nothing where it does not say, since within the session it runs none of
        them twice."""
        self._status = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(STATUS_TIMEOUT_S):
                await connection.send(client_frames.request_ids_frame("call_status", request_ids))
                return await self._status
        except TimeoutError:
            return {}
        finally:
            self._status = None

    # --- frames in ---------------------------------------------------------------------------------------------------

    def deliver(self, frame: ServerFrame) -> None:
        """Hand a frame to whoever waits for it."""
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
            case ToolsChanged():
                self._hear_of_tools(frame.rev)
            case _:
                self.answers.deliver(frame)

    def _hear_of_tools(self, rev: str | None) -> None:
        """The daemon says which listing it has: at each hello, and when it changes."""
        if rev is None:
            return
        known, self._tools_rev = self._tools_rev, rev
        if known not in {None, rev} and self._on_tools_changed is not None:
            tell(self._on_tools_changed, rev)

    def _received_answer(self, request_id: str) -> None:
        """The daemon need not keep it any more, whether somebody waited for it or nobody does."""
        self._cancelling.discard(request_id)
        self._received.append(request_id)
        if len(self._received) >= FORGET_COUNT:
            self._forget()
        elif self._forgetting is None:
            self._forgetting = asyncio.get_running_loop().call_later(FORGET_AFTER_S, self._forget)

    def _forget(self) -> None:
        if self._received and self._connection is not None:
            self._errand(partial(self._connection.send, self._forget_received()))

    def _forget_received(self) -> bytes:
        self._stop_timer()
        received, self._received = self._received, []
        return client_frames.request_ids_frame("acknowledge", received)

    def _stop_timer(self) -> None:
        if self._forgetting is not None:
            self._forgetting.cancel()
            self._forgetting = None

    # --- frames out --------------------------------------------------------------------------------------------------

    def give_up(self, waiting: PendingAnswer) -> None:
        """Nobody waits for this call any more: have the daemon end it, now or after the next resume."""
        if waiting.sent and (waiting.open or waiting.answer.cancelled()):
            self._have_cancelled(waiting.request_id)

    def cancel(self, waiting: PendingAnswer) -> None:
        """End this call; whoever waits for it gets its one answer. A call that was never sent ends at once."""
        if waiting.sent:
            self._have_cancelled(waiting.request_id)
        else:
            waiting.answer.set_exception(
                CallCancelledError("The call was cancelled before it was sent.", executed="no")
            )

    def _have_cancelled(self, request_id: str) -> None:
        if self.key is not None:
            self._cancelling.add(request_id)
        if self._connection is not None:
            self._errand(partial(self._connection.send, client_frames.request_frame("cancel", request_id)))

    def _errand(self, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        async def run() -> None:
            with suppress(ConnectionLostError):  # the next connection brings what is still to be said
                await work()

        task = asyncio.create_task(run(), name="toold client errand")
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)
        return task


async def _send_again(connection: ClientConnection, waiting: PendingAnswer, call: CallFrame) -> None:
    try:
        await connection.send(call.frame(asyncio.get_running_loop().time()))
    except InvalidArgumentsError as error:  # the daemon takes shorter frames than before
        waiting.answer.set_exception(error)
