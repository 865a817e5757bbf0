"""``health``: whether the daemon takes calls, and what else is wrong."""

from typing import Any

from ..tool import Arguments, tool
from ..tool_context import ToolContext


@tool("health", read_only=True, open_world=False, idempotent=True, unmetered=True)
async def health(_arguments: Arguments, context: ToolContext) -> dict[str, Any]:
    """Say whether the daemon takes calls (`status`: `ready` or `stopping`), and what else is wrong (`problems`)."""
    return context.daemon.health()
