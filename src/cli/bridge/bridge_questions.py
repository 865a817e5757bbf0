"""Questions of running calls to the editor: as requests in revisions with sessions, as rounds in stateless ones."""

import asyncio
from collections.abc import Mapping
from secrets import token_urlsafe
from typing import Any, Final

from ...protocol import json_rpc
from ...protocol.frames import QuestionFrame
from ...protocol.json_rpc import INVALID_PARAMS, MessageProblem, RpcReply
from ...protocol.mcp.input_rounds import InputRound, ParkedCall, ParkedCalls, input_required_result
from ...protocol.terminal_text import one_line
from ...protocol.tool_call import ToolCall, ToolResult
from .line_channel import LineChannel

_STATE_BYTES: Final = 24
_OWNER: Final = "editor"
"""The label of the channel's only client."""
_GONE: Final = "the editor did not answer"


class EditorRefusedError(Exception):
    """The editor answered a question with an error; the message is its reason."""


class EditorRequests:
    """The requests of this process to the editor."""

    def __init__(self, lines: LineChannel) -> None:
        self._lines = lines
        self._waiting: dict[str, asyncio.Future[RpcReply]] = {}

    async def ask(self, frame: QuestionFrame) -> Mapping[str, Any]:
        """Asks a question and returns the result.

        Raises:
            EditorRefusedError: the editor answered with an error.
        """
        request_id = f"toold-{frame.question_id}"
        waiting = self._waiting[request_id] = asyncio.get_running_loop().create_future()
        try:
            await self._lines.write(json_rpc.request(request_id, frame.method, frame.params))
            reply = await waiting
        except asyncio.CancelledError:
            cancelled = {"requestId": request_id, "reason": "The answer is not needed any longer."}
            await asyncio.shield(self._lines.write(json_rpc.notification("notifications/cancelled", cancelled)))
            raise
        finally:
            del self._waiting[request_id]
        if reply.result is None:
            message = (reply.error or {}).get("message")
            raise EditorRefusedError(one_line(message, 300) if isinstance(message, str) else _GONE)
        result: Mapping[str, Any] = reply.result
        return result

    def take(self, reply: RpcReply) -> None:
        """Passes the editor's answer to the waiting question; any other answer is dropped."""
        waiting = self._waiting.get(reply.id) if isinstance(reply.id, str) else None
        if waiting is not None and not waiting.done():
            waiting.set_result(reply)


class RoundCall:
    """A call of a stateless revision, whose questions are answered in rounds."""

    def __init__(self) -> None:
        self.task: asyncio.Task[ToolResult] | None = None
        self.open: dict[str, tuple[QuestionFrame, asyncio.Future[Mapping[str, Any]]]] = {}
        self._asked = asyncio.Event()
        self._parked = False

    async def ask(self, frame: QuestionFrame) -> Mapping[str, Any]:
        """Waits for the round with the answer. If the daemon withdraws the question between two rounds, because the
        editor did not begin the next round in time, the call ends.
        """
        answer: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self.open[frame.question_id] = frame, answer
        self._asked.set()
        try:
            return await answer
        except asyncio.CancelledError:
            if self._parked and self.task is not None:
                self.task.cancel()
            raise
        finally:
            del self.open[frame.question_id]

    def answer(self, responses: Mapping[str, Any]) -> None:
        """Passes the answers of a round to their questions; other answers are ignored."""
        self._parked = False
        for name, (_, answer) in self.open.items():
            response = responses.get(name)
            if response is not None and not answer.done():
                if isinstance(response, dict):
                    answer.set_result(response)
                else:
                    answer.set_exception(EditorRefusedError("the answer is not an object"))

    async def next_round(self) -> ToolResult | None:
        """Waits for the call's result. Returns None as soon as questions are open."""
        task = self.task
        if task is None:
            raise RuntimeError("the call has not been made")
        asked = asyncio.ensure_future(self._asked.wait())
        try:
            while not task.done():
                await asyncio.sleep(0)  # so that simultaneous questions form one round
                if any(not answer.done() for _, answer in self.open.values()):
                    self._asked.clear()
                    self._parked = True
                    return None
                self._asked.clear()
                asked.cancel()
                asked = asyncio.ensure_future(self._asked.wait())
                await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
            return await task
        finally:
            asked.cancel()


class EditorRounds:
    """The calls that wait for their next rounds."""

    def __init__(self) -> None:
        self._parked: ParkedCalls[RoundCall] = ParkedCalls()
        self._calls: set[RoundCall] = set()

    def take(self, following: InputRound, call: ToolCall) -> RoundCall | MessageProblem:
        """Returns the parked call that a request continues, with its answers."""
        parked = self._parked.take(following.state, _OWNER, call.name, call.arguments)
        if isinstance(parked, MessageProblem):
            return parked
        self._calls.discard(parked)
        if parked.task is None or parked.task.done():
            return MessageProblem(INVALID_PARAMS, "The call has ended: its questions were not answered in time.")
        parked.answer(following.responses)
        return parked

    def park(self, call: ToolCall, waiting: RoundCall) -> dict[str, Any]:
        """Returns the result that asks for the next round."""
        state = token_urlsafe(_STATE_BYTES)
        self._parked.park(state, ParkedCall(_OWNER, call.name, call.arguments, waiting))
        self._calls.add(waiting)
        if waiting.task is not None:
            waiting.task.add_done_callback(lambda _: self._drop(state, waiting))
        return input_required_result(
            ((name, frame.method, frame.params) for name, (frame, _) in waiting.open.items()), state
        )

    def close(self) -> None:
        """Cancels the parked calls: the editor has exited, so no round follows."""
        for waiting in tuple(self._calls):
            if waiting.task is not None:
                waiting.task.cancel()

    def _drop(self, state: str, waiting: RoundCall) -> None:
        self._parked.drop(state)
        self._calls.discard(waiting)
