"""Calls of tools that requests of the platform API make."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from ....protocol.json_pieces import LONG_BYTES
from ....protocol.tool_call import ToolCall, ToolResult
from ...dispatch import PreparedCall, Router, prepare_call
from ...observability.logging_setup import bind_session
from ...off_loop import off_loop
from ..a2a.a2a_exchange import A2AAbsentPort, A2AExchange
from ..http_client import toolset_with
from ..keyed_sessions import KeyedSessions
from ..mcp.mcp_caller import make_label
from .platform_error import PlatformError, error_of
from .platform_route import PlatformRequest

TRANSPORT: Final = "platform"
_CALL: Final = "1"
"""The request id of a call, which has its session to itself."""


class PlatformCalls:
    """Submits calls to the router, and waits for their results."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._sessions = KeyedSessions(router, transport=TRANSPORT, absent_port=A2AAbsentPort())

    def __repr__(self) -> str:
        return f"<PlatformCalls {self._router!r}>"

    async def run(self, request: PlatformRequest, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The data of the tool's result.

        Raises:
            PlatformError: the call failed, or the caller may not call the tool.
        """
        toolset = toolset_with(self._router.catalog, request.access, tool)
        if toolset is None:
            why = f"No toolset of this token has the tool {tool}, which this path calls; ask the operator."
            raise PlatformError(HTTPStatus.FORBIDDEN, why)
        session = self._sessions.open(
            request.access, toolset, request.client, label=make_label(request.client), streams=False
        )
        bind_session(session.label)
        call = ToolCall(_CALL, tool, dict(arguments), None, request.size)
        prepared: ToolCall | PreparedCall = call
        if request.size > LONG_BYTES:
            prepared = await off_loop(prepare_call, self._router.catalog, session, call)
        exchange = A2AExchange()
        self._router.connect(session, exchange)
        try:
            submitted = self._router.submit(session, prepared, exchange)
            if isinstance(submitted, ToolResult):
                exchange.settle(submitted)
            result = await exchange.answer
        finally:
            self._router.disconnect(session, exchange)
        if result.error is not None:
            raise error_of(result.error)
        return result.structured if isinstance(result.structured, dict) else {}
