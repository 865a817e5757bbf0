"""The result of a call: ``CallResult``, and the flat record for metric scripts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

import msgspec

from ..protocol.error_codes import CallError, error_from_wire
from ..protocol.frames import CallToolRes
from ..protocol.tool_call import DEFAULT_TIMEOUT_S, Json, Metadata


class CallOutcome(tuple[bool, list[dict[str, Any]], str | None]):  # noqa: SLOT001 - it has attributes
    """The result of ``call_tool``: ``(success, outputs, error)``, with the rest of the answer as attributes."""

    structured: Json
    """The tool's structured data; None if the call failed, or the answer is only text."""
    metadata: Metadata | None
    """The answer's metadata; None if no answer arrived."""

    def __new__(
        cls,
        outputs: list[dict[str, Any]],
        error: str | None = None,
        structured: Json = None,
        metadata: Metadata | None = None,
    ) -> Self:
        outcome = super().__new__(cls, (error is None, outputs, error))
        outcome.structured, outcome.metadata = structured, metadata
        return outcome


@dataclass(frozen=True, slots=True)
class CallResult:
    """A call that succeeded."""

    request_id: str
    outputs: list[dict[str, Any]]
    """MCP content blocks, a text block first."""
    structured: Json
    """The tool's structured data; None if the answer is only text, or the data is null."""
    metadata: Metadata

    @property
    def text(self) -> str:
        """The text blocks, joined by newlines."""
        return "\n".join(str(block.get("text", "")) for block in self.outputs if block.get("type") == "text")


def result_of(frame: CallToolRes) -> CallResult:
    """Returns the result in an answer.

    Raises:
        CallError: the answer is an error.
    """
    if frame.error is not None:
        raise error_from_wire(frame.error)
    structured = None if frame.structured is msgspec.UNSET else frame.structured
    outputs = [block for block in frame.outputs if isinstance(block, dict)]
    return CallResult(str(frame.request_id), outputs, structured, frame.metadata)


def error_text(error: CallError | ConnectionError) -> str:
    """Returns one line: code and message of the daemon's error, or the connection error."""
    return f"{error.code.value}: {error.message}" if isinstance(error, CallError) else str(error)


def version_and_timeout(baseline_version: str | float | None, timeout: float | None) -> tuple[str | None, float]:
    """Distinguishes the two signatures of ``execute_tool_with_metrics``: a string is a version, a number a timeout.

    Raises:
        TypeError: the third argument is neither a string nor a number, or the timeout is given twice.
    """
    if baseline_version is None or isinstance(baseline_version, str):
        return baseline_version, DEFAULT_TIMEOUT_S if timeout is None else timeout
    if isinstance(baseline_version, bool) or not isinstance(baseline_version, int | float):
        kind = type(baseline_version).__name__
        raise TypeError(f"the third argument is a baseline version (str) or a timeout in seconds, not {kind}")
    if timeout is not None:
        raise TypeError("the timeout is given twice: as third argument and as timeout=")
    return None, float(baseline_version)


def metrics_record(
    *,
    tool_name: str,
    iteration: int,
    baseline_version: str | None,
    started: datetime,
    latency_ms: float,
    outputs: Sequence[dict[str, Any]],
    error: str | None,
) -> dict[str, Any]:
    """Returns the flat record; ``timestamp`` is the start of the call, ISO 8601 in UTC."""
    record: dict[str, Any] = {
        "tool_name": tool_name,
        "iteration": iteration,
        "status": "success" if error is None else "error",
        "latency_ms": latency_ms,
        "timestamp": started.astimezone(UTC).isoformat(),
    }
    if baseline_version is not None:
        record["baseline_version"] = baseline_version
    if error is None:
        record["output_count"] = len(outputs)
    else:
        record["error"] = error
    return record
