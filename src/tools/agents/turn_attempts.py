"""Makes one turn of a role, and retries it if its error is retryable."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from ...protocol.error_codes import error_from_wire
from ...protocol.tool_call import ToolResult
from ..orchestration_context import OrchestrationContext
from .agent_definition import Role
from .agent_messages import TurnAnswer
from .agent_run import AgentRun, role_failed

MAX_ATTEMPTS: Final = 3
"""The maximum number of attempts at one turn with retryable errors, in addition to the SDKs' own retries."""
_PAUSE_S: Final = 1.0
"""The delay before the second attempt. It doubles before the third."""


async def make_turn(
    run: AgentRun,
    role: Role,
    arguments: dict[str, Any],
    name: str,
    context: OrchestrationContext,
    *,
    stream: bool = True,
) -> TurnAnswer:
    """Returns the model's answer to one turn: the child call ``name``, and for further attempts ``name#2``, ``name#3``.

    Raises:
        CallError: the vendor failed; the message names the role.
        ToolExecutionError: the run has made ``max_turns``.
    """
    result = await with_attempts(
        lambda attempt: run.turn(role, arguments, attempt, context, stream=stream), name, context
    )
    if result.error is not None:
        raise role_failed(error_from_wire(result.error), role)
    return msgspec.convert(result.structured, TurnAnswer)


async def with_attempts(
    ask: Callable[[str], Awaitable[ToolResult]], name: str, context: OrchestrationContext
) -> ToolResult:
    """Makes the child call ``name``, and after retryable errors ``name#2`` and ``name#3``; returns the last result."""
    for attempt in range(1, MAX_ATTEMPTS + 1):
        result = await ask(name if attempt == 1 else f"{name}#{attempt}")
        error = result.error
        if error is None:
            return result
        pause = max(_PAUSE_S * attempt, (error.retry_after_ms or 0) / 1000)
        # After a replayed attempt the remaining time does not matter, because the journal may also have the next
        # attempt.
        no_time = not result.metadata.replayed and context.remaining() <= pause
        if not error.retryable or attempt == MAX_ATTEMPTS or no_time:
            return result
        if not result.metadata.replayed:
            await asyncio.sleep(pause)
    raise AssertionError("the last attempt returns")
