"""``toolcall_log_tail``: the caller's most recent audit rows."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from ..former_arguments import FormerNames
from ..tool import Arguments, ToolOutput, tool
from ..tool_context import ToolContext


class ToolcallLogTailArguments(Arguments):
    """Filters for audit rows."""

    ignored_arguments: ClassVar[Mapping[str, str]] = {"path": "the calls are in the daemon's audit, not in a file"}

    limit: Annotated[int, FormerNames("n", clamped=True)] = Field(
        default=20, ge=1, le=200, description="Number of calls, latest first."
    )
    tool: str | None = Field(default=None, max_length=128, description="Only calls of this tool.")
    outcome: str | None = Field(
        default=None,
        max_length=64,
        description="Only calls with this outcome: ok, an error code, or error (any).",
    )


@tool("toolcall_log_tail", read_only=True, open_world=False, idempotent=True)
async def toolcall_log_tail(arguments: ToolcallLogTailArguments, context: ToolContext) -> ToolOutput:
    """Show the audit rows of your recent calls: time, tool, outcome, latency, tokens and cost.

    `arguments` has the shape of the arguments, or their redacted content if the operator enabled it.
    """
    rows = await context.daemon.ended(
        context.principal, arguments.limit, tool=arguments.tool, outcome=arguments.outcome
    )
    return ToolOutput("\n".join(map(_line, rows)) or "no such call", rows)


def _line(row: dict[str, Any]) -> str:
    """Describes one call in one line."""
    tokens = f", {row['input_tokens']}+{row['output_tokens']} tokens" if row["input_tokens"] else ""
    model = f", {row['model']}" if row["model"] else ""
    message = f": {row['message']}" if row["message"] else ""
    return f"{row['id']} {row['tool']} {row['outcome']}{message} ({row['latency_ms']:.0f} ms{model}{tokens})"
