"""Matches answers with pending requests. Uses futures and frames, no socket."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeVar

import msgspec

from ..protocol.error_codes import CallCancelledError, ProtocolError, error_from_wire
from ..protocol.frames import (
    CallToolAck,
    CallToolRes,
    CancelRes,
    ErrorFrame,
    HealthRes,
    ListToolsRes,
    Pong,
    ProgressFrame,
    ServerFrame,
    StreamChunk,
)
from ..protocol.tool_call import Progress, RequestId
from .client_frames import CallFrame
from .question_callbacks import CallQuestionState

_log = logging.getLogger(__name__)

OnProgress = Callable[[Progress], None]
"""Called on the event loop for each report of a running call; must not block."""


class TextChunk(str):
    """A chunk of an answer's text."""

    __slots__ = ("offset",)

    offset: int | None
    """The number of characters of the text before it. If it exceeds the number received so far, the rest was streamed
    while the client was not connected. None if the daemon is too old to report it.
    """

    def __new__(cls, text: str, offset: int | None) -> Self:
        chunk = super().__new__(cls, text)
        chunk.offset = offset
        return chunk


OnChunk = Callable[[TextChunk], None]
"""Called on the event loop for each chunk of the answer's text, in order; must not block."""
OnToolsChanged = Callable[[str], None]
"""Called on the event loop with the listing's new ``rev``; must not block."""
OnNotification = Callable[[str, dict[str, Any]], None]
"""Called on the event loop with the method and the parameters of a notification; must not block."""

Answer = CallToolRes | CancelRes | ListToolsRes | Pong | HealthRes
"""The frames that answer a request."""

A = TypeVar("A")


class PendingAnswer(msgspec.Struct, eq=False):
    """A pending request: a call, or another request such as a ping."""

    request_id: str
    answer: asyncio.Future[Answer]
    call: CallFrame | None
    """The call's frame; None for other requests."""
    on_progress: OnProgress | None
    on_chunk: OnChunk | None
    sent: bool = False
    """Whether the request was sent on any connection, so that it may have had an effect."""
    questions: CallQuestionState = msgspec.field(default_factory=CallQuestionState)
    accepted: bool = False
    """Whether the daemon accepted the call, which it reports to clients with the feature ``ack``. The answer to a call
    that was not accepted is a rejection.
    """

    @property
    def open(self) -> bool:
        return not self.answer.done()

    def reset(self) -> None:
        """Discards the answer and waits for another one."""
        self.sent = False
        self.answer = self.answer.get_loop().create_future()


class PendingAnswers:
    """The requests in flight, by id. Answers to unknown ids are dropped."""

    def __init__(self) -> None:
        self._waiting: dict[RequestId, PendingAnswer] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[PendingAnswer]:
        """Iterates over a snapshot of the unanswered requests."""
        return iter([waiting for waiting in self._waiting.values() if waiting.open])

    @contextmanager
    def expect(
        self,
        request_id: str,
        *,
        call: CallFrame | None = None,
        on_progress: OnProgress | None = None,
        on_chunk: OnChunk | None = None,
    ) -> Iterator[PendingAnswer]:
        """Registers a request for the block; later answers are dropped.

        Raises:
            ValueError: a request with this id is already in flight.
        """
        if request_id in self._waiting:
            raise ValueError(f"request_id {request_id!r} is already in flight; use a new one for each call")
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        waiting = PendingAnswer(request_id, answer, call, on_progress, on_chunk)
        self._waiting[request_id] = waiting
        try:
            yield waiting
        finally:
            del self._waiting[request_id]
            waiting.questions.end()
            if waiting.answer.done() and not waiting.answer.cancelled():
                waiting.answer.exception()  # retrieved, so that asyncio does not report it

    def open_request(self, request_id: RequestId | None) -> PendingAnswer | None:
        """Returns the request with this id if it is unanswered."""
        waiting = None if request_id is None else self._waiting.get(request_id)
        return None if waiting is None or waiting.answer.done() else waiting

    def deliver(self, frame: ServerFrame) -> None:
        """Passes a frame to its request; a second answer is dropped."""
        match frame:
            case CallToolAck() | ProgressFrame() | StreamChunk():
                self._report(frame)
            case CallToolRes() | ListToolsRes() | Pong() | HealthRes():
                waiting = self.open_request(frame.request_id)
                if waiting:
                    waiting.answer.set_result(frame)
            case CancelRes():
                self._not_running(frame)
            case ErrorFrame():
                waiting = self.open_request(frame.request_id)
                if waiting:
                    waiting.answer.set_exception(error_from_wire(frame.error))
                else:
                    _log.warning("the daemon refused a frame: %s: %s", frame.error.code, frame.error.message)
            case _:
                pass  # an announcement that this client did not subscribe to

    def _report(self, frame: CallToolAck | ProgressFrame | StreamChunk) -> None:
        waiting = self.open_request(frame.request_id)
        if waiting is None:
            return
        match frame:
            case CallToolAck():
                waiting.accepted = True
                if frame.notice is not None:
                    _log.warning("call %s: %s", frame.request_id, frame.notice)
            case ProgressFrame():
                if waiting.on_progress:
                    run_callback(waiting.on_progress, Progress(frame.message, frame.done, frame.total))
            case StreamChunk():
                if waiting.on_chunk:
                    run_callback(waiting.on_chunk, TextChunk(frame.text, frame.offset))

    def _not_running(self, frame: CancelRes) -> None:
        """Handles a cancel of a call that is not running. A call that is pending here will still be answered, unless it
        never reached the daemon.
        """
        waiting = self.open_request(frame.request_id)
        if waiting and waiting.call is None:
            waiting.answer.set_result(frame)
        elif waiting and frame.status == "unknown":
            waiting.answer.set_exception(CallCancelledError("The call was cancelled before it started.", executed="no"))


def expect_frame(kind: type[A], answer: object) -> A:
    """Returns the answer if it has the expected type.

    Raises:
        ProtocolError: the daemon answered with another frame.
    """
    if not isinstance(answer, kind):
        raise ProtocolError(f"The daemon answered with {type(answer).__name__} instead of {kind.__name__}.")
    return answer


def run_callback(callback: Callable[..., None], *values: object) -> None:
    """Runs a callback and logs its exceptions."""
    try:
        callback(*values)
    except Exception:  # noqa: BLE001 - must not end the reader that all calls depend on
        _log.exception("callback failed")
