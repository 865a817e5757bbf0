"""The frames that a WebSocket connection sends for a call, with the older names for clients that use them. Pure."""

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from ...protocol.frames import CallToolRes, Health, ListTools, Ping, ProgressFrame, StreamChunk, encode
from ...protocol.long_texts import encode_answer
from ...protocol.tool_call import ContentBlock, Progress, RequestId, TextContent, ToolCall, ToolResult
from ...tools import ResultText, former_error
from ..dispatch import RunningCall


def former_id(call: ToolCall) -> RequestId | UnsetType:
    """The older name of the request id, for clients that used it."""
    return call.request_id if call.echo_id else UNSET


def both_ids(frame: ListTools | Ping | Health) -> tuple[RequestId | None, RequestId | None]:
    """``request_id`` and ``id`` of the answer: an id that was sent as ``id`` is echoed under both names."""
    return frame.id if frame.request_id is None else frame.request_id, frame.id


def progress_frame(running: RunningCall, progress: Progress) -> ProgressFrame:
    running.reports += 1
    call = running.request
    return ProgressFrame(
        call.request_id, running.reports, progress.message, progress.done, progress.total, id=former_id(call)
    )


def chunk_frame(running: RunningCall, text: str, offset: int) -> StreamChunk:
    running.chunks += 1
    return StreamChunk(running.request.request_id, running.chunks, text, offset, id=former_id(running.request))


def answer_frame(request_id: RequestId, echo_id: bool, result: ToolResult, form: ResultText = "prose") -> bytes:
    """The answer. In a session with the form ``json``, an error is also a JSON text, as in earlier servers."""
    return encode_answer(result, lambda result: encode(_answer(request_id, echo_id, result, form)))


def _answer(request_id: RequestId, echo_id: bool, result: ToolResult, form: ResultText) -> CallToolRes:
    outputs: Sequence[ContentBlock] = result.outputs
    if result.error is not None and form == "json":
        outputs = (former_error(result.error),)
    return CallToolRes(
        request_id,
        outputs,
        result.error,
        result.metadata,
        structured=result.structured,
        id=request_id if echo_id else UNSET,
        ok=result.error is None,
        result=_former_result(result) if echo_id else UNSET,
        meta=result.meta,
    )


def _former_result(result: ToolResult) -> Sequence[ContentBlock]:
    """``outputs`` in the form for clients that send ``id``: an error is a text."""
    if result.error is None:
        return result.outputs
    return (TextContent(f"Error {result.error.code}: {result.error.message}"),)
