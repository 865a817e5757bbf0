"""Who waits for which answer. Knows futures and frames, no socket."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

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

_log = logging.getLogger(__name__)

OnProgress = Callable[[Progress], None]
"""Called on the event loop for each report of a running call; must not block."""
OnChunk = Callable[[str], None]
"""Called on the event loop for each piece of the answer's text, in order; must not block."""
OnToolsChanged = Callable[[str], None]
"""Called on the event loop with the listing's new ``rev``; must not block."""

Answer = CallToolRes | CancelRes | ListToolsRes | Pong | HealthRes
"""The frames that end a wait."""

A = TypeVar("A")


class PendingAnswer(msgspec.Struct, eq=False):
    """Somebody who waits for an answer: to a call, or to a question."""

    request_id: str
    answer: asyncio.Future[Answer]
    call: CallFrame | None
    """None for a question."""
    on_progress: OnProgress | None
    on_chunk: OnChunk | None
    sent: bool = False
    """Whether it went out on some connection, so that it may have had an effect."""
    accepted: bool = False
    """The daemon said that it takes the call (to clients with ``ack``); else its answer is a refusal at the door."""

    @property
    def open(self) -> bool:
        return not self.answer.done()

    def wait_anew(self) -> None:
        """The answer that came does not count: wait for another."""
        self.sent = False
        self.answer = self.answer.get_loop().create_future()


class PendingAnswers:
    """The requests in flight, by id. An answer to an id that is not here is nobody's any more and is dropped."""

    def __init__(self) -> None:
        self._waiting: dict[RequestId, PendingAnswer] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[PendingAnswer]:
        """Those whose answer has not come, as of now."""
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
        """Wait for this request's answer; once the block is left, a late answer reaches nobody.

        Raises:
            ValueError: a request of this id is in flight already.
        """
        if request_id in self._waiting:
            raise ValueError(f"request_id {request_id!r} is in flight already; use a new one for each call")
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        waiting = PendingAnswer(request_id, answer, call, on_progress, on_chunk)
        self._waiting[request_id] = waiting
        try:
            yield waiting
        finally:
            del self._waiting[request_id]
            if waiting.answer.done() and not waiting.answer.cancelled():
                waiting.answer.exception()  # so that an error that nobody awaited any more is not reported as lost

    def find(self, request_id: RequestId | None) -> PendingAnswer | None:
        """Who waits for the answer to this request, which has not come."""
        waiting = None if request_id is None else self._waiting.get(request_id)
        return None if waiting is None or waiting.answer.done() else waiting

    def deliver(self, frame: ServerFrame) -> None:
        """Hand a frame to whoever waits for it; the second answer to one request is dropped."""
        match frame:
            case CallToolAck() | ProgressFrame() | StreamChunk():
                self._report(frame)
            case CallToolRes() | ListToolsRes() | Pong() | HealthRes():
                waiting = self.find(frame.request_id)
                if waiting:
                    waiting.answer.set_result(frame)
            case CancelRes():
                self._not_running(frame)
            case ErrorFrame():
                waiting = self.find(frame.request_id)
                if waiting:
                    waiting.answer.set_exception(error_from_wire(frame.error))
                else:
                    _log.warning("the daemon refused a frame: %s: %s", frame.error.code, frame.error.message)
            case _:
                pass  # an announcement that this client did not ask for

    def _report(self, frame: CallToolAck | ProgressFrame | StreamChunk) -> None:
        waiting = self.find(frame.request_id)
        if waiting is None:
            return
        match frame:
            case CallToolAck():
                waiting.accepted = True
                if frame.notice is not None:
                    _log.warning("call %s: %s", frame.request_id, frame.notice)
            case ProgressFrame():
                if waiting.on_progress:
                    tell(waiting.on_progress, Progress(frame.message, frame.done, frame.total))
            case StreamChunk():
                if waiting.on_chunk:
                    tell(waiting.on_chunk, frame.text)

    def _not_running(self, frame: CancelRes) -> None:
        """A call that was to be cancelled is not running. Where it waits here, its own answer is on its way, unless the
        call never arrived."""
        waiting = self.find(frame.request_id)
        if waiting and waiting.call is None:
            waiting.answer.set_result(frame)
        elif waiting and frame.status == "unknown":
            waiting.answer.set_exception(CallCancelledError("The call was cancelled before it began.", executed="no"))


def answered_with(kind: type[A], answer: object) -> A:
    """The answer, as the kind that the request asks for.

    Raises:
        ProtocolError: the daemon answered with another kind of frame.
    """
    if not isinstance(answer, kind):
        raise ProtocolError(f"The daemon answered with {type(answer).__name__} where {kind.__name__} was due.")
    return answer


def tell(callback: Callable[[Any], None], value: object) -> None:
    """Call back, whatever comes of it."""
    try:
        callback(value)
    except Exception:  # noqa: BLE001 - whatever it is, it must not end the reader that all calls depend on
        _log.exception("a callback failed")
