"""The hidden tool ``agent_result``: stores a result that is too long for a model, so that the model can read it by its
handle.
"""

from typing import Final

from ...protocol.tool_call import Json
from ..orchestration_context import OrchestrationContext
from ..tool import Arguments, ToolOutput, tool
from .agent_snapshot import RoleSnapshot

READ_RESULT: Final = "read_result"
"""The tool with which a role reads handles. Without it, a handle is useless."""


class ResultArguments(Arguments):
    """The call whose result is stored. The result is in the run's memory, not in the arguments."""

    call: str


@tool("agent_result", read_only=False, idempotent=True, open_world=False, orchestration=True)
async def agent_result(_arguments: ResultArguments, _context: OrchestrationContext) -> ToolOutput:
    """Store a long result of a call in a file."""
    raise NotImplementedError  # the role replaces this function with one that has the result


def can_read(role: RoleSnapshot, tool: str = "") -> bool:
    """Whether the role can read handles of results of this tool. Pages of ``read_result`` get no handle."""
    return tool != READ_RESULT and any(each.kind == "tool" and each.target == READ_RESULT for each in role.functions)


async def handle_of(value: Json, call: str, context: OrchestrationContext) -> str:
    """Stores the result of the child ``call``; returns its handle, or an empty text if it cannot be stored.

    This is a child call. A resumed run, whose calls have other ids, reads the same handle from the journal.
    """

    async def store(_: ResultArguments, storing: OrchestrationContext) -> ToolOutput:
        kept = await storing.retain_result(value, value if isinstance(value, list) else None, "json")
        return ToolOutput(kept.handle, {"handle": kept.handle})

    result = await context.call(agent_result.with_function(store), {"call": call}, name=f"file.{call}", journal=True)
    return "" if result.error is not None else result.text
