"""``00_INIT``: toold's instructions, for models whose client does not pass them on."""

from ..client_instructions import instructions
from ..orchestration_context import LookupContext
from ..tool import Arguments, tool
from ..toolsets import INIT_TOOL


@tool(INIT_TOOL, read_only=True, open_world=False, idempotent=True, unmetered=True)
async def init(_arguments: Arguments, context: LookupContext) -> str:
    """Get the instructions for using this daemon's tools. Skip this call if you already have toold's instructions."""
    return instructions(context.toolset_view, simulated=context.daemon.simulated)
