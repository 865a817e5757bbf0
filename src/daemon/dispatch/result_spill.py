"""Spills answers that are too large to send into files, and sends a handle instead (decision 34)."""

import asyncio
from typing import Final

import msgspec
from msgspec.structs import replace

from ...protocol.error_codes import CallError, ServiceUnavailableError
from ...protocol.tool_call import Json, TextContent, ToolResult
from ...tools import RetainedResult, RetainedResults, described
from .running_call import RunningCall

WRITE_TIMEOUT_S: Final = 10.0
"""How long an answer waits for a slow disk."""


async def spilled(call: RunningCall, result: ToolResult, size: int, results: RetainedResults) -> ToolResult:
    """The result to send instead of one whose answer has ``size`` bytes.

    Raises:
        CallError: the file could not be written.
    """
    value = result.value
    rows = value if isinstance(value, list) else None
    try:
        async with asyncio.timeout(WRITE_TIMEOUT_S):
            retained = await results.keep(call.session.principal, call.id, value, rows, "json")
    except TimeoutError:
        raise ServiceUnavailableError(f"The file was not written within {WRITE_TIMEOUT_S:g} s.") from None
    data: Json = msgspec.to_builtins(retained)
    metadata = replace(result.metadata, spilled=True)
    return ToolResult(metadata, (TextContent(_notice(value, retained, size)),), data)


def spill_failure(error: CallError) -> str:
    """A sentence for ``too_large``: why the answer could not be spilled."""
    return f"It could not be stored in a file: {error.message}"


def _notice(value: Json, retained: RetainedResult, size: int) -> str:
    return (
        f"The answer ({described(value, retained.bytes)}) has {size:,} bytes, too many to send. It is retained as "
        f"{retained.handle} until {retained.expires}; use read_result to page through or shape it."
    )
