"""Calls and questions, over whatever connection stands: wait for one, send, wait for the answer, give up in time."""

import asyncio
import uuid
from collections.abc import Mapping
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
from .pending_answers import Answer, OnChunk, OnProgress, PendingAnswer, answered_with

GRACE_S: Final = 5.0
"""How much longer than the daemon the client waits, so that the daemon's own TIMEOUT, which says more, arrives."""
ASK_TIMEOUT_S: Final = 10.0
"""For what the daemon answers at once: list_tools, ping, health, cancel."""


class RequestExchange:
    """What is asked of the daemon over a link, and what becomes of it."""

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
    ) -> CallToolRes:
        """As ``MCPWebSocketClient.answer``; a call that ``survives_reconnect`` waits for connections that are away."""
        now = asyncio.get_running_loop().time()
        call = CallFrame(
            client_frames.call_tool_frame(request_id, name, arguments),
            None if timeout is None else now + timeout,
            survives_reconnect,
        )
        patience_s = (self._longest_s() if timeout is None else timeout) + GRACE_S
        with self._session.answers.expect(request_id, call=call, on_progress=on_progress, on_chunk=on_chunk) as waiting:
            try:
                async with asyncio.timeout_at(now + patience_s):
                    return await self._answer(waiting, call, now)
            except TimeoutError as exc:
                self._session.give_up(waiting)
                message = f"The daemon did not answer within {patience_s:g} s; the call was cancelled and may have run."
                raise CallTimeoutError(message, executed="maybe", transient=False) from exc
            except asyncio.CancelledError:
                self._session.give_up(waiting)
                raise

    async def cancel(self, request_id: str) -> bool:
        """As ``MCPWebSocketClient.cancel``."""
        waiting = self._session.answers.find(request_id)
        if waiting is None and self._link.idle:
            self._standing()  # nothing is connected for the sake of a cancel
        try:
            answer = await (self.ask("cancel", request_id) if waiting is None else self._end(waiting))
        except CallCancelledError:
            return True
        return isinstance(answer, CallToolRes) and answer.error is not None and answer.error.code == ErrorCode.CANCELLED

    async def ask(self, op: str, request_id: str | None = None) -> Answer:
        """Put a question, and return its answer.

        Raises: as ``MCPWebSocketClient.ping``.
        """
        await self.connected()
        connection = self._standing()
        with self._session.answers.expect(request_id or uuid.uuid4().hex) as waiting:
            try:
                async with asyncio.timeout(ASK_TIMEOUT_S):
                    await connection.send(client_frames.request_frame(op, waiting.request_id))
                    return await waiting.answer
            except TimeoutError as exc:
                message = f"The daemon did not answer {op} within {ASK_TIMEOUT_S:g} s."
                raise CallTimeoutError(message, executed="no") from exc

    async def connected(self) -> None:
        """Return once a connection stands.

        Raises:
            ConnectionFailedError: none came about within 30 s, or none will.
            ConnectionLostError: the client was disconnected meanwhile.
        """
        if not self._link.connected:
            await self._ready(asyncio.get_running_loop().time() + DEFAULT_TIMEOUT_S)

    # --- within ------------------------------------------------------------------------------------------------------

    async def _answer(self, waiting: PendingAnswer, call: CallFrame, now: float) -> CallToolRes:
        """Send the call over a connection that takes it, and wait for its answer, by whichever connection it comes."""
        while waiting.open:
            connection = self._link.connection
            if connection is None or not connection.takes_calls:
                if call.survives_reconnect:
                    await self._ready(now + DEFAULT_TIMEOUT_S if call.deadline is None else call.deadline, waiting)
                    now = asyncio.get_running_loop().time()
                    continue
                connection = self._standing()
            waiting.sent = True
            await connection.send(call.frame(now))
            answer = answered_with(CallToolRes, await waiting.answer)
            if not (call.survives_reconnect and connection.leaving and turned_away(answer, waiting, connection)):
                return answer
            waiting.wait_anew()
        return answered_with(CallToolRes, await waiting.answer)  # it was cancelled before it was sent

    async def _end(self, waiting: PendingAnswer) -> Answer:
        """Have a call of this client end, and return its one answer."""
        self._session.cancel(waiting)
        try:
            async with asyncio.timeout(ASK_TIMEOUT_S):
                return await asyncio.shield(waiting.answer)
        except TimeoutError as exc:
            message = f"The call {waiting.request_id} did not end within {ASK_TIMEOUT_S:g} s after it was cancelled."
            raise CallTimeoutError(message, executed="no") from exc

    async def _ready(self, deadline: float, waiting: PendingAnswer | None = None) -> None:
        """Return once a connection takes calls, or the one who waits for that is not in need of it any more.

        Raises:
            ConnectionFailedError: none came about until then, or none will.
            ConnectionLostError: the client was disconnected meanwhile.
        """
        try:
            async with asyncio.timeout_at(deadline):
                await self._link.ready(waiting.answer if waiting else None)
        except TimeoutError as exc:
            failed = self._link.last_error
            why = f": {failed}" if isinstance(failed, ConnectionFailedError) else ""
            raise ConnectionFailedError(f"no connection came about in time{why}", retryable=True) from exc

    def _standing(self) -> ClientConnection:
        """The connection as it is.

        Raises:
            ConnectionLostError: none stands.
        """
        connection = self._link.connection
        if connection is None:
            raise ConnectionLostError("there is no connection; call connect() first", executed="no")
        if not connection.open:
            raise connection.lost("no")
        return connection

    def _longest_s(self) -> float:
        """No call runs for longer, whatever its tool says."""
        connection = self._link.connection
        return connection.ack.limits.max_timeout_s if connection and connection.ack.limits else MAX_TIMEOUT_S


def turned_away(answer: CallToolRes, waiting: PendingAnswer, connection: ClientConnection) -> bool:
    """Whether a daemon that goes away refused the call at its door, so that the next may take it under the same id."""
    error = answer.error
    return (
        error is not None
        and (error.code, error.executed) == (ErrorCode.SERVICE_UNAVAILABLE, "no")
        and "ack" in (connection.ack.features or ())  # else nobody can tell a call that was taken
        and not waiting.accepted
    )
