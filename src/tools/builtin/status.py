"""``status``: how the daemon is, and what it did last."""

from typing import Any

from pydantic import Field

from ..tool import Arguments, tool
from ..tool_context import ToolContext


class StatusArguments(Arguments):
    """How much of the past."""

    recent: int = Field(default=10, ge=0, le=100, description="How many of the last calls to list.")
    days: int = Field(default=7, ge=0, le=400, description="How many days of usage, today (UTC) included.")


@tool("status", read_only=True, open_world=False, idempotent=True, unmetered=True)
async def status(arguments: StatusArguments, context: ToolContext) -> dict[str, Any]:
    """Show version, uptime, limits and what of them is in use, connections, providers, tokens and cost by day, and the
    last calls.
    """
    return await context.daemon.status(recent=arguments.recent, days=arguments.days)
