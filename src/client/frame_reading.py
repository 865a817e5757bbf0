"""The daemon's frames as this client takes them: a frame that makes no sense harms no call. Pure, but for the log."""

import logging
from typing import Any, Final

import msgspec

from ..protocol.error_codes import ErrorCode, ToolError
from ..protocol.frames import CallToolRes, ServerFrame, decode_server_frame
from ..protocol.tool_call import Metadata, Timings

_log = logging.getLogger(__name__)

_NO_METADATA: Final = Metadata(latency_ms=0.0, timings=Timings())


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
