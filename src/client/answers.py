"""Who waits for which answer. Knows futures and frames, no socket."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from ..protocol.calls import Metadata, Progress, RequestId, Timings
from ..protocol.errors import ErrorCode, ProtocolError, ToolError, error_from_wire
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
    decode_server_frame,
)

_log = logging.getLogger(__name__)

OnProgress = Callable[[Progress], None]
"""Called on the event loop for each report of a running call; must not block."""
OnChunk = Callable[[str], None]
"""Called on the event loop for each piece of the answer's text, in order; must not block."""

Answer = CallToolRes | CancelRes | ListToolsRes | Pong | HealthRes
"""The frames that end a wait."""

A = TypeVar("A")

_NO_METADATA: Final = Metadata(latency_ms=0.0, timings=Timings())


@dataclass(frozen=True, slots=True)
class _Waiting:
    answer: asyncio.Future[Answer]
    on_progress: OnProgress | None
    on_chunk: OnChunk | None


class Answers:
    """The requests in flight, by id. An answer to an id that is not here is nobody's any more and is dropped."""

    def __init__(self) -> None:
        self._waiting: dict[RequestId, _Waiting] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @contextmanager
    def expect(
        self, request_id: str, *, on_progress: OnProgress | None = None, on_chunk: OnChunk | None = None
    ) -> Iterator[asyncio.Future[Answer]]:
        """The future of this request's answer; once the block is left, a late answer reaches nobody.

        Raises:
            ValueError: a request of this id is in flight already.
        """
        if request_id in self._waiting:
            raise ValueError(f"request_id {request_id!r} is in flight already; use a new one for each call")
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = _Waiting(answer, on_progress, on_chunk)
        try:
            yield answer
        finally:
            del self._waiting[request_id]
            if answer.done() and not answer.cancelled():
                answer.exception()  # looked at, so that an error nobody awaited any more is not reported as lost

    def find(self, request_id: str) -> asyncio.Future[Answer] | None:
        """The future of a request in flight."""
        waiting = self._waiting.get(request_id)
        return waiting.answer if waiting else None

    def deliver(self, frame: ServerFrame) -> None:
        """Hand a frame to whoever waits for it; the second answer to one request is dropped."""
        match frame:
            case CallToolRes() | CancelRes() | ListToolsRes() | Pong() | HealthRes():
                waiting = self._open(frame.request_id)
                if waiting:
                    waiting.answer.set_result(frame)
            case ErrorFrame():
                waiting = self._open(frame.request_id)
                if waiting:
                    waiting.answer.set_exception(error_from_wire(frame.error))
                else:
                    _log.warning("the daemon refused a frame: %s: %s", frame.error.code, frame.error.message)
            case ProgressFrame():
                waiting = self._open(frame.request_id)
                if waiting and waiting.on_progress:
                    _tell(waiting.on_progress, Progress(frame.message, frame.done, frame.total))
            case StreamChunk():
                waiting = self._open(frame.request_id)
                if waiting and waiting.on_chunk:
                    _tell(waiting.on_chunk, frame.text)
            case CallToolAck(notice=str(notice)):
                _log.warning("call %s: %s", frame.request_id, notice)
            case _:
                pass  # an announcement that this client did not ask for

    def fail_all(self, make_error: Callable[[], Exception]) -> None:
        """End every wait at once, each with an exception of its own: a traceback belongs to one task."""
        for waiting in self._waiting.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(make_error())

    def _open(self, request_id: RequestId | None) -> _Waiting | None:
        waiting = None if request_id is None else self._waiting.get(request_id)
        return waiting if waiting and not waiting.answer.done() else None


def answered_with(kind: type[A], answer: object) -> A:
    """The answer, as the kind that the request asks for.

    Raises:
        ProtocolError: the daemon answered with another kind of frame.
    """
    if not isinstance(answer, kind):
        raise ProtocolError(f"The daemon answered with {type(answer).__name__} where {kind.__name__} was due.")
    return answer


def _tell(callback: Callable[[Any], None], value: object) -> None:
    try:
        callback(value)
    except Exception:  # noqa: BLE001 - whatever it is, it must not end the reader that all calls depend on
        _log.exception("a callback of a running call failed")


def read_frame(data: bytes | str) -> ServerFrame | None:
    """A server's frame, or None for one that this client does not know: later daemons may send more.

    A ``call_tool_res`` that does not fit the model still ends its call: its fields are taken as far as they fit.
    """
    frame: ServerFrame | None
    try:
        try:
            frame = decode_server_frame(data)
        except msgspec.ValidationError:
            frame = _salvage(msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        _log.warning("a frame that is not JSON was skipped: %s", exc)
        return None
    return frame


def _salvage(frame: Any) -> ServerFrame | None:
    match frame:
        case {"op": "call_tool_res", "request_id": str() | int() | float() as request_id}:
            outputs = frame.get("outputs")
            return CallToolRes(
                request_id=request_id,
                outputs=outputs if isinstance(outputs, list) else [],
                error=_salvage_error(frame.get("error")),
                metadata=_salvage_metadata(frame.get("metadata")),
                structured=frame.get("structured", msgspec.UNSET),
            )
        case {"op": op}:
            _log.debug("a frame of op %r was skipped", op)
        case _:
            _log.warning("a frame that is no object with an op was skipped")
    return None


def _salvage_error(error: object) -> ToolError | None:
    if error is None:
        return None
    try:
        return msgspec.convert(error, ToolError)
    except msgspec.ValidationError:
        message = error.get("message", error) if isinstance(error, dict) else error
        return ToolError(ErrorCode.INTERNAL_ERROR, str(message), executed="maybe", retryable=False)


def _salvage_metadata(metadata: object) -> Metadata:
    try:
        return msgspec.convert(metadata, Metadata)
    except msgspec.ValidationError:
        return _NO_METADATA
