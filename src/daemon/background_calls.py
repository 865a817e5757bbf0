"""Calls that the daemon itself makes, for example for embeddings. They are admitted, limited, charged and recorded like
all calls."""

from collections.abc import Mapping

from ..protocol.tool_call import ClientInfo, Json, Principal, ToolCall, ToolResult
from ..tools import FULL_TOOLSET
from .dispatch import AwaitedResultPort, Router


async def call_in_background(
    router: Router, tool: str, arguments: Mapping[str, Json], principal: Principal, *, timeout_s: float
) -> ToolResult:
    """Call a tool of the daemon as this principal, whose budgets apply, and wait for the result. Cancelling the wait
    also cancels a read-only call."""
    port = AwaitedResultPort()
    session = router.sessions.open(
        "toold",
        principal,
        ClientInfo(),
        toolset=FULL_TOOLSET,
        transport="background",
        streaming=False,
        absent_port=port,
    )
    router.connect(session, port)
    try:
        request = ToolCall("call", tool, dict(arguments), timeout_ms=timeout_s * 1000, on_disconnect="cancel")
        submitted = router.submit(session, request, port)
        return submitted if isinstance(submitted, ToolResult) else await port.answer
    finally:
        router.disconnect(session, port)
