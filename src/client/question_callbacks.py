"""Answers the daemon's questions with callbacks. Uses tasks and frames, but no socket."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from ..protocol.frames import QuestionClosed, QuestionFrame, encode
from ..protocol.tool_call import RequestId

_log = logging.getLogger(__name__)

OnQuestion = Callable[[QuestionFrame], Awaitable[Mapping[str, Any]]]
"""Called for each question of a running call. Returns MCP's result for the question's method, or raises an exception
whose text is the reason for not answering. Cancelled when the answer is no longer needed."""

_REFUSED = -1
"""MCP's error code for a request that the user rejected."""


class CallQuestionState(msgspec.Struct, eq=False):
    """The questions of one call of this client."""

    on_question: OnQuestion | None = None
    timeout: asyncio.Timeout | None = None
    """The call's timeout on this side. Its clock stops while a question is open, as in the daemon."""
    left_s: float = 0.0
    asking: dict[str, asyncio.Task[None]] = msgspec.field(default_factory=dict)
    answered: dict[str, bytes] = msgspec.field(default_factory=dict)
    """Answers that were sent. They may be lost with the connection; the daemon then asks again after a resume."""

    def stop_clock(self, seconds: float) -> None:
        if self.timeout is not None and not self.timeout.expired() and (when := self.timeout.when()) is not None:
            now = asyncio.get_running_loop().time()
            if not self.asking:
                self.left_s = when - now
            self.timeout.reschedule(now + self.left_s + seconds)

    def start_clock(self) -> None:
        if self.timeout is not None and not self.timeout.expired() and not self.asking:
            self.timeout.reschedule(asyncio.get_running_loop().time() + self.left_s)

    def end(self) -> None:
        """Ends the questions, because the call has its answer."""
        self.timeout = None
        for task in self.asking.values():
            task.cancel()


class QuestionCallbacks:
    """Runs the callbacks of all calls."""

    def __init__(self, find: Callable[[RequestId], CallQuestionState | None], send: Callable[[bytes], object]) -> None:
        """``find`` returns the questions of an unanswered call; ``send`` sends a frame over the current connection, if
        there is one.
        """
        self._find = find
        self._send = send

    def ask(self, frame: QuestionFrame) -> None:
        """Runs the callback, unless it is already running. If the question was answered, sends the answer again."""
        state = self._find(frame.request_id)
        if state is None or state.on_question is None or frame.question_id in state.asking:
            return
        sent = state.answered.get(frame.question_id)
        if sent is not None:
            self._send(sent)
            return
        state.stop_clock(frame.timeout_ms / 1000)
        task = asyncio.create_task(self._answer(state, state.on_question, frame), name="toold client question")
        state.asking[frame.question_id] = task
        task.add_done_callback(partial(_forget, state, frame.question_id))

    def close(self, frame: QuestionClosed) -> None:
        """Cancels the callback of a question that no longer needs an answer."""
        state = self._find(frame.request_id)
        task = None if state is None else state.asking.get(frame.question_id)
        if task is not None:
            task.cancel()

    async def _answer(self, state: CallQuestionState, on_question: OnQuestion, frame: QuestionFrame) -> None:
        fields: dict[str, Any] = {
            "op": "answer_question",
            "request_id": frame.request_id,
            "question_id": frame.question_id,
        }
        try:
            answer = encode({**fields, "result": dict(await on_question(frame))})
        except Exception as error:  # noqa: BLE001 - whatever the callback raises is the reason
            _log.info("a question was not answered: %s", error)
            answer = encode({**fields, "error": {"code": _REFUSED, "message": str(error) or type(error).__name__}})
        state.answered[frame.question_id] = answer
        self._send(answer)


def _forget(state: CallQuestionState, question_id: str, _: object) -> None:
    state.asking.pop(question_id, None)
    state.start_clock()
