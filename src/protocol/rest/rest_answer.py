"""Answers of the REST API: the tool's data with the metadata as a header, or an error with its HTTP status. Pure."""

import json
from collections.abc import Mapping
from math import ceil
from typing import Any, Final, NamedTuple

import msgspec

from ..error_codes import ErrorCode, ToolError
from ..tool_call import Metadata, Progress, ToolResult

METADATA_HEADER: Final = "toold-metadata"
MAX_METADATA_BYTES: Final = 4096
"""The maximum size of the header with metadata. Servers and proxies accept 8 KiB for all headers together."""
_ALWAYS: Final = ("latency_ms", "provider", "model", "simulated", "spilled", "replayed", "cache_age_s")
"""The fields of metadata that remain if the whole metadata is too long."""

STATUS_OF_CODE: Final[Mapping[str, int]] = {
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.PROTOCOL_ERROR: 400,
    ErrorCode.UNAUTHORIZED: 401,
    ErrorCode.PERMISSION_DENIED: 403,
    ErrorCode.TOOL_NOT_FOUND: 404,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.REQUEST_ID_CONFLICT: 409,
    ErrorCode.RESULT_EXPIRED: 410,
    ErrorCode.VALIDATION_ERROR: 422,
    ErrorCode.CONTEXT_LENGTH_EXCEEDED: 422,
    ErrorCode.OVER_CAPACITY: 429,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.TOOL_EXECUTION_ERROR: 500,
    ErrorCode.RESULT_TOO_LARGE: 500,
    ErrorCode.OUTCOME_UNKNOWN: 500,
    ErrorCode.CANCELLED: 500,
    ErrorCode.INTERNAL_ERROR: 500,
    ErrorCode.PROVIDER_ERROR: 502,
    ErrorCode.SERVICE_UNAVAILABLE: 503,
    ErrorCode.TIMEOUT: 504,
}
"""The HTTP status of each error code."""

_encode: Final = msgspec.json.Encoder().encode


class RestAnswer(NamedTuple):
    """The answer to a request, whole or as the last event of a stream."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...]
    metadata: Metadata | None = None
    """None if no call was made."""

    def event(self) -> bytes:
        """The answer as an event."""
        if self.status != 200:
            return _event(b"error", self.body)
        return _event(b"result", b'{"result":' + self.body + b',"metadata":' + _encode(self.metadata) + b"}")

    @property
    def header_metadata(self) -> str | None:
        """The metadata as a header's value: JSON in ASCII. Long metadata is reduced to the most important fields."""
        if self.metadata is None:
            return None
        fields: dict[str, Any] = msgspec.to_builtins(self.metadata)
        text = _ascii_json(fields)
        if len(text) > MAX_METADATA_BYTES:
            text = _ascii_json({name: fields[name] for name in _ALWAYS if name in fields})
        return text


def answer_of(result: ToolResult) -> RestAnswer:
    """The answer to a call that has ended.

    Raises:
        TypeError, ValueError, RecursionError: the tool's data is not valid JSON data.
    """
    if result.error is not None:
        return _failed(result.error, (), result.metadata)
    return RestAnswer(200, _encode(result.value), (), result.metadata)


def error_answer(error: ToolError, status: int | None = None, headers: tuple[tuple[str, str], ...] = ()) -> RestAnswer:
    """The answer to a request that is not a call, or to a call that was refused."""
    return _failed(error, headers, None, status)


def progress_event(progress: Progress) -> bytes:
    """A progress report as an event."""
    counts = {name: value for name in ("done", "total") if (value := getattr(progress, name)) is not None}
    return _event(b"progress", _encode({"message": progress.message, **counts}))


def chunk_event(text: str) -> bytes:
    """A piece of the answer's text as an event."""
    return _event(b"chunk", _encode({"text": text}))


def _failed(
    error: ToolError, headers: tuple[tuple[str, str], ...], metadata: Metadata | None, status: int | None = None
) -> RestAnswer:
    if error.retry_after_ms is not None:
        headers = (*headers, ("retry-after", str(ceil(error.retry_after_ms / 1000))))
    return RestAnswer(status or STATUS_OF_CODE.get(error.code, 500), _encode({"error": error}), headers, metadata)


def _event(name: bytes, data: bytes) -> bytes:
    """One event; the JSON is on one line."""
    return b"event: " + name + b"\ndata: " + data + b"\n\n"


def _ascii_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
