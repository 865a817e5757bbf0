"""The frames that the client sends and receives. Pure, except for the log.

Frames omit optional fields that have no value, so that older daemons accept them. A malformed frame from the daemon is
skipped; it never ends another call.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ..protocol.error_codes import ErrorCode, InvalidArgumentsError, ToolError
from ..protocol.frames import CallToolRes, ServerFrame, decode_server_frame, encode
from ..protocol.tool_call import Metadata, Timings

_log = logging.getLogger(__name__)

_NO_METADATA: Final = Metadata(latency_ms=0.0, timings=Timings())


def hello_frame(
    *,
    session_id: str | None,
    token: str | None,
    features: Sequence[str],
    client: Mapping[str, str | None],
    toolset: str | None = None,
    resume_key: str | None = None,
    connection_number: int = 0,
) -> bytes:
    """Returns the first frame. Without features and toolset it has only ``session_id`` and ``token``."""
    frame: dict[str, Any] = {"op": "hello", "session_id": session_id, "token": token}
    if features:
        frame["features"] = list(features)
        frame["client"] = {key: value for key, value in client.items() if value is not None}
    if toolset is not None:
        frame["toolset"] = toolset
    if resume_key is not None:
        frame["resume"] = {"key": resume_key, "n": connection_number}
    return encode(frame)


class CallFrame(msgspec.Struct, frozen=True, gc=False):
    """A call that can be sent repeatedly. The daemon treats all repeats as the same call, even with different
    timeouts.
    """

    body: bytes
    """The frame without a timeout."""
    deadline: float | None
    """The deadline by the loop's clock; None uses the tool's default timeout."""
    survives_reconnect: bool
    """Whether the call is still awaited after its connection ends."""

    def frame(self, now: float) -> bytes:
        """Returns the frame to send now. After the deadline its timeout is 1 ms, so the daemon answers that nothing
        ran.
        """
        if self.deadline is None:
            return self.body
        left_ms = max(round((self.deadline - now) * 1000, 3), 1.0)
        return b'%b,"timeout_ms":%b}' % (self.body[:-1], encode(left_ms))


def call_tool_frame(
    request_id: str,
    name: str,
    arguments: Mapping[str, Any] | None,
    traceparent: str | None = None,
    answers: Sequence[str] = (),
    meta: Mapping[str, Any] | None = None,
) -> bytes:
    """Returns a ``call_tool`` frame without a timeout.

    Raises:
        InvalidArgumentsError: the arguments cannot be encoded as JSON.
    """
    frame: dict[str, Any] = {
        "op": "call_tool",
        "request_id": request_id,
        "name": name,
        "arguments": {} if arguments is None else arguments,
    }
    if traceparent is not None:
        frame["traceparent"] = traceparent
    if answers:
        frame["answers"] = answers
    if meta:
        frame["_meta"] = meta
    try:
        return encode(frame)
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidArgumentsError(f"The arguments of {name!r} cannot be encoded as JSON: {exc}.") from exc


def request_frame(op: str, request_id: str) -> bytes:
    """Returns a ``cancel``, ``list_tools``, ``ping`` or ``health`` frame."""
    return encode({"op": op, "request_id": request_id})


def request_ids_frame(op: str, request_ids: Sequence[str]) -> bytes:
    """Returns a ``call_status`` or ``acknowledge`` frame."""
    return encode({"op": op, "request_ids": request_ids})


def read_frame(data: bytes | str) -> ServerFrame | None:
    """Returns the daemon's frame; None for an unknown frame, which later daemons may send.

    A ``call_tool_res`` that does not fit the model still ends its call; its valid fields are used.
    """
    frame: ServerFrame | None
    try:
        try:
            frame = decode_server_frame(data)
        except msgspec.ValidationError:
            frame = _salvage(msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        _log.warning("skipped a frame that is not JSON: %s", exc)
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
            _log.debug("skipped a frame with op %r", op)
        case _:
            _log.warning("skipped a frame that is not an object with an op")
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
