"""Calls tools for requests of the HTTP port, one tool per request."""

from collections.abc import Mapping
from typing import Any, Final

from ...protocol.authorization import Authorization
from ...protocol.tool_call import ClientInfo, ToolCall, ToolResult
from ..dispatch import AbsentResultPort, AwaitedResultPort, Router, prepared
from ..observability.logging_setup import bind_session
from .http_client import toolset_with
from .keyed_sessions import KeyedSessions
from .mcp.mcp_caller import make_label

_CALL: Final = "1"
"""The request id of a call; it is the only call of its session."""


class NoToolsetError(Exception):
    """No toolset of the caller has the tool."""


class ToolCalls:
    """Submits calls to the router, and waits for their results."""

    def __init__(self, router: Router, transport: str) -> None:
        self._router = router
        self._sessions = KeyedSessions(router, transport=transport, absent_port=AbsentResultPort())

    def __repr__(self) -> str:
        return f"<ToolCalls {self._router!r}>"

    async def run(
        self,
        access: Authorization,
        client: ClientInfo,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        size: int,
        cancelled_with_client: bool = False,
    ) -> ToolResult:
        """Returns the result of a call whose request has ``size`` bytes. Cancelling this method counts as a disconnect
        of the caller, which with ``cancelled_with_client`` ends the call.

        Raises:
            NoToolsetError: the caller may not call the tool.
        """
        toolset = toolset_with(self._router.catalog, access, tool)
        if toolset is None:
            raise NoToolsetError(
                f"No toolset of this token has the tool {tool}, which this path calls; ask the operator."
            )
        session = self._sessions.open(access, toolset, client, label=make_label(client), streams=False)
        bind_session(session.label)
        call = ToolCall(_CALL, tool, dict(arguments), None, size, "cancel" if cancelled_with_client else None)
        ready = await prepared(self._router.catalog, session, call)
        port = AwaitedResultPort()
        self._router.connect(session, port)
        try:
            submitted = self._router.submit(session, ready, port)
            if isinstance(submitted, ToolResult):
                port.settle(submitted)
            return await port.answer
        finally:
            self._router.disconnect(session, port)
