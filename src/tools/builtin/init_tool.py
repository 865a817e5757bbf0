"""``00_INIT``: what a client is told when it connects, for models whose client does not pass that on."""

from ..client_instructions import instructions
from ..orchestration_context import LookupContext
from ..tool import Arguments, tool
from ..toolsets import INIT_TOOL


@tool(INIT_TOOL, read_only=True, open_world=False, idempotent=True, unmetered=True)
async def init(_arguments: Arguments, context: LookupContext) -> str:
    """How to use the tools of this daemon. If you have not been given toold's instructions yet, they are here; skip it
    if you have.
    """
    return instructions(context.toolset_view, simulated=context.daemon.simulated)
