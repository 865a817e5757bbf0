"""Fits an answer that is too large to send: spills its result to a file and sends the handle (decision 34)."""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec
import structlog
from msgspec.structs import replace

from ...protocol.error_codes import CallError, ServiceUnavailableError
from ...protocol.tool_call import ContentBlock, Json, TextContent, ToolResult
from ...tools import RetainedResult, RetainedResults, conversational_outputs, described
from ..observability.logging_setup import error_text
from . import call_outcome
from .running_call import RunningCall

_log = structlog.get_logger("toold.dispatch")

WRITE_TIMEOUT_S: Final = 10.0
"""How long an answer waits for a slow disk."""


async def fit_answer(
    call: RunningCall,
    result: ToolResult,
    answer: bytes,
    *,
    max_bytes: int,
    results: RetainedResults,
    clock: Callable[[], float],
    exceeded: str | None = None,
) -> tuple[bytes, ToolResult]:
    """The answer and result to send instead of an answer that is too large: the handle of the retained result.

    ``exceeded`` says whose limit for unread or cached answers this one would exceed. If the result cannot be retained,
    returns the unchanged answer if it fits into a frame of ``max_bytes`` and exceeds no such limit, otherwise an error.
    """
    size = len(answer)
    try:
        if result.ok:
            result = await _spill(call, result, size, results, exceeded)
            return call.port.render(call, result), result
        refusal = call_outcome.too_large(size, max_bytes)
    except CallError as error:
        _log.warning("answer could not be spilled to a file", tool=call.tool.name, reason=error_text(error))
        refusal = call_outcome.too_large(size, max_bytes, f"It could not be stored in a file: {error.message}")
    if size <= max_bytes and exceeded is None:
        return answer, result
    result = call_outcome.failed(call, refusal, clock())
    return call.port.render(call, result), result


async def _spill(
    call: RunningCall, result: ToolResult, size: int, results: RetainedResults, exceeded: str | None
) -> ToolResult:
    """The result to send in place of a result whose answer has ``size`` bytes.

    Raises:
        CallError: the file could not be written.
    """
    value = result.value
    rows = value if isinstance(value, list) else None
    try:
        async with asyncio.timeout(WRITE_TIMEOUT_S):
            retained = await results.keep(call.session.principal, call.id, value, rows, "json")
    except TimeoutError:
        raise ServiceUnavailableError.content_free(f"The file was not written within {WRITE_TIMEOUT_S:g} s.") from None
    data: Json = msgspec.to_builtins(retained)
    metadata = replace(result.metadata, spilled=True)
    outputs: tuple[ContentBlock, ...] = (TextContent(_notice(value, retained, size, exceeded)),)
    if call.tool.conversational:
        outputs = conversational_outputs(call.tool.name, outputs, result.structured, "prose")
    return ToolResult(metadata, outputs, data, typed=result.typed)


def _notice(value: Json, retained: RetainedResult, size: int, exceeded: str | None) -> str:
    why = "too many to send" if exceeded is None else f"and with it unread answers would exceed the limit of {exceeded}"
    return (
        f"The answer ({described(value, retained.bytes)}) has {size:,} bytes, {why}. It is retained as "
        f"{retained.handle} until {retained.expires}; use read_result to page through or shape it."
    )
