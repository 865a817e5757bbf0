"""Answers that are too large to be sent: kept as a file, with a handle in their place (decision 34)."""

import asyncio
from typing import Final

import msgspec
from msgspec.structs import replace

from ...protocol.error_codes import CallError, ServiceUnavailableError
from ...protocol.tool_call import Json, TextContent, ToolResult
from ...tools import RetainedResult, RetainedResults, described
from .running_call import RunningCall

PATIENCE_S: Final = 10.0
"""A disk that does not answer keeps a caller waiting for its answer no longer than this."""


async def spilled(running: RunningCall, result: ToolResult, size: int, results: RetainedResults) -> ToolResult:
    """What is sent instead of a result whose answer has ``size`` bytes.

    Raises:
        CallError: it could not be kept.
    """
    value = result.value
    rows = value if isinstance(value, list) else None
    try:
        async with asyncio.timeout(PATIENCE_S):
            kept = await results.keep(running.session.principal, running.id, value, rows, "json")
    except TimeoutError:
        raise ServiceUnavailableError(f"The disk did not take it within {PATIENCE_S:g} s.") from None
    data: Json = msgspec.to_builtins(kept)
    metadata = replace(result.metadata, spilled=True)
    return ToolResult(metadata, (TextContent(_told(value, kept, size)),), data)


def why_not(error: CallError) -> str:
    """Why an answer could not be kept, to stand behind that it is too large."""
    return f"it could not be kept as a file either: {error.message}"


def _told(value: Json, kept: RetainedResult, size: int) -> str:
    return (
        f"The answer ({described(value, kept.bytes)}) would have {size:,} bytes and is not sent. It is kept as the "
        f"result {kept.handle} until {kept.expires}: read_result pages and shapes it."
    )
