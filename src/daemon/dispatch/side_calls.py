"""Child calls of tools that are not orchestration tools, such as a request to a model."""

import asyncio
from collections.abc import Mapping

from ...protocol.tool_call import Json, ToolResult
from ...tools import Tool
from .call_creation import side_scope
from .child_calls import PLAIN, ChildCalls
from .run_budget import RunLimits
from .running_call import RunningCall


async def call_beside(
    children: ChildCalls,
    call: RunningCall,
    tool: Tool,
    arguments: Mapping[str, Json],
    name: str,
    daily: Mapping[str, float],
) -> ToolResult:
    """Implements ``LookupContext.call_hidden``. While its child runs, the call holds no permit, because the child needs
    one.
    """
    scope = call.child_scope
    if scope is None:
        scope = call.child_scope = side_scope(call)
        scope.limiting = asyncio.Lock() if daily else None
    if (limiting := scope.limiting) is not None:  # children at the same time wait, so that the budget applies to all
        async with limiting:
            if scope.limiting is not None:
                await children.limit_spending(call, scope, RunLimits(tool.name, {}, None), daily)
                scope.limiting = None
    async with call.permit.paused():
        return await children.call(call, scope, tool, arguments, name, None, PLAIN)
