"""Sends calls and other requests over the current connection, and waits for their answers with a timeout."""

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..protocol.error_codes import CallCancelledError, CallTimeoutError, ErrorCode
from ..protocol.frames import CallToolRes
from ..protocol.tool_call import DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S
from . import client_frames
from .client_connection import ClientConnection
from .client_errors import ConnectionFailedError, ConnectionLostError
from .client_frames import CallFrame
from .client_link import ClientLink
from .client_session import ClientSession
from .pending_answers import Answer, OnChunk, OnProgress, PendingAnswer, expect_frame
from .question_callbacks import OnQuestion

GRACE_S: Final = 5.0
"""The client waits this much longer than the daemon, so that the daemon's more detailed TIMEOUT arrives."""
REQUEST_TIMEOUT_S: Final = 10.0
"""The timeout of requests that the daemon answers at once: list_tools, ping, health, cancel."""


class RequestExchange:
    """Sends requests over a link and returns their answers."""

    def __init__(self, session: ClientSession, link: ClientLink) -> None:
        self._session = session
        self._link = link

    async def answer(
        self,
        request_id: str,
        name: str,
        arguments: Mapping[str, Any] | None,
        timeout: float | None,
        *,
        survives_reconnect: bool,
        on_progress: OnProgress | None,
        on_chunk: OnChunk | None,
        traceparent: str | None,
        on_question: OnQuestion | None = None,
        answers: Sequence[str] = (),
        meta: Mapping[str, Any] | None = None,
    ) -> CallToolRes:
        """Implements ``MCPWebSocketClient.answer``. A call that ``survives_reconnect`` waits for a reconnect."""
        now = asyncio.get_running_loop().time()
        call = CallFrame(
            client_frames.call_tool_frame(request_id, name, arguments, traceparent, answers, meta),
            None if timeout is None else now + timeout,
            survives_reconnect,
        )
        limit_s = (self._longest_s() if timeout is None else timeout) + GRACE_S
        with self._session.answers.expect(request_id, call=call, on_progress=on_progress, on_chunk=on_chunk) as waiting:
            try:
                async with asyncio.timeout_at(now + limit_s) as clock:
                    waiting.questions.on_question, waiting.questions.timeout = on_question, clock
                    return await self._answer(waiting, call, now)
            except TimeoutError as exc:
                self._session.abandon(waiting)
                message = f"The daemon did not answer within {limit_s:g} s; the call was cancelled and may have run."
                raise CallTimeoutError(message, executed="maybe", transient=False) from exc
            except asyncio.CancelledError:
                self._session.abandon(waiting)
                raise

    async def cancel(self, request_id: str) -> bool:
        """Implements ``MCPWebSocketClient.cancel``."""
        waiting = self._session.answers.open_request(request_id)
        if waiting is None and self._link.idle:
            self._open_connection()  # a cancel does not open a connection
        try:
            answer = await (self.request("cancel", request_id) if waiting is None else self._end(waiting))
        except CallCancelledError:
            return True
        return isinstance(answer, CallToolRes) and answer.error is not None and answer.error.code == ErrorCode.CANCELLED

    async def request(self, op: str, request_id: str | None = None) -> Answer:
        """Sends a request and returns its answer.

        Raises the same errors as ``MCPWebSocketClient.ping``.
        """
        await self.connected()
        connection = self._open_connection()
        with self._session.answers.expect(request_id or uuid.uuid4().hex) as waiting:
            try:
                async with asyncio.timeout(REQUEST_TIMEOUT_S):
                    await connection.send(client_frames.request_frame(op, waiting.request_id))
                    return await waiting.answer
            except TimeoutError as exc:
                message = f"The daemon did not answer {op} within {REQUEST_TIMEOUT_S:g} s."
                raise CallTimeoutError(message, executed="no") from exc

    async def connected(self) -> None:
        """Waits for an open connection.

        Raises:
            ConnectionFailedError: no connection was open within 30 s, or reconnecting stopped.
            ConnectionLostError: the client was disconnected in the meantime.
        """
        if not self._link.connected:
            await self._ready(asyncio.get_running_loop().time() + DEFAULT_TIMEOUT_S)

    # --- internal ----------------------------------------------------------------------------------------------------

    async def _answer(self, waiting: PendingAnswer, call: CallFrame, now: float) -> CallToolRes:
        """Sends the call over a connection that accepts it, and waits for its answer on any connection."""
        while waiting.open:
            connection = self._link.connection
            if connection is None or not connection.accepts_calls:
                if call.survives_reconnect:
                    await self._ready(now + DEFAULT_TIMEOUT_S if call.deadline is None else call.deadline, waiting)
                    now = asyncio.get_running_loop().time()
                    continue
                connection = self._open_connection()
            waiting.sent = True
            await connection.send(call.frame(now))
            answer = expect_frame(CallToolRes, await waiting.answer)
            if not (
                call.survives_reconnect
                and connection.going_away
                and rejected_before_accept(answer, waiting, connection)
            ):
                return answer
            waiting.reset()
        return expect_frame(CallToolRes, await waiting.answer)  # cancelled before it was sent

    async def _end(self, waiting: PendingAnswer) -> Answer:
        """Cancels a call of this client and returns its one answer."""
        self._session.cancel(waiting)
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                return await asyncio.shield(waiting.answer)
        except TimeoutError as exc:
            message = (
                f"The call {waiting.request_id} did not end within {REQUEST_TIMEOUT_S:g} s after it was cancelled."
            )
            raise CallTimeoutError(message, executed="no") from exc

    async def _ready(self, deadline: float, waiting: PendingAnswer | None = None) -> None:
        """Waits until a connection accepts calls, or the pending call is answered.

        Raises:
            ConnectionFailedError: no connection was open before the deadline, or reconnecting stopped.
            ConnectionLostError: the client was disconnected in the meantime.
        """
        try:
            async with asyncio.timeout_at(deadline):
                await self._link.ready(waiting.answer if waiting else None)
        except TimeoutError as exc:
            failed = self._link.last_error
            reason = f": {failed}" if isinstance(failed, ConnectionFailedError) else ""
            raise ConnectionFailedError(f"no connection could be made in time{reason}", retryable=True) from exc

    def _open_connection(self) -> ClientConnection:
        """Returns the open connection.

        Raises:
            ConnectionLostError: there is no open connection.
        """
        connection = self._link.connection
        if connection is None:
            raise ConnectionLostError("there is no connection; call connect() first", executed="no")
        if not connection.open:
            raise connection.lost("no")
        return connection

    def _longest_s(self) -> float:
        """The daemon's limit on the duration of calls."""
        connection = self._link.connection
        return connection.ack.limits.max_timeout_s if connection and connection.ack.limits else MAX_TIMEOUT_S


def rejected_before_accept(answer: CallToolRes, waiting: PendingAnswer, connection: ClientConnection) -> bool:
    """Whether a daemon that is going away rejected the call, so that it can be resent with the same id."""
    error = answer.error
    return (
        error is not None
        and (error.code, error.executed) == (ErrorCode.SERVICE_UNAVAILABLE, "no")
        and "ack" in (connection.ack.features or ())  # otherwise an accepted call cannot be recognized
        and not waiting.accepted
    )
