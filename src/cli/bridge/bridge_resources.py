"""Resources, prompts and log messages over stdio, by calls of the daemon's methods of the same names."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from ...protocol.json_rpc import MessageProblem, RpcRequest
from ...protocol.mcp.catalog_result import catalog_answer
from ...protocol.mcp.mcp_call import parse_method_call
from ...protocol.mcp.mcp_result import empty_result
from ...protocol.mcp.request_envelope import RequestEnvelope
from ...protocol.tool_call import ToolCall
from .daemon_link import DaemonLink


class BridgeResources:
    """Answers an editor's requests about resources and prompts."""

    def __init__(self, link: DaemonLink) -> None:
        self._link = link

    def __repr__(self) -> str:
        return f"<BridgeResources {self._link!r}>"

    async def answer(self, request: RpcRequest, envelope: RequestEnvelope) -> dict[str, Any] | MessageProblem:
        """The result of a method that lists, reads, gets or completes."""
        call = parse_method_call(request, uuid4().hex, 0)
        if isinstance(call, MessageProblem):
            return call
        return catalog_answer(call.name, call.arguments, await self._link.call(call, None), envelope.revision)

    async def change(self, request: RpcRequest, envelope: RequestEnvelope) -> dict[str, Any] | MessageProblem:
        """The empty result of a method that changes the editor's subscriptions."""
        answer = await self.answer(request, envelope)
        return answer if isinstance(answer, MessageProblem) else empty_result(envelope.revision)

    async def follow(self, method: str, params: Mapping[str, Any]) -> bool:
        """Calls a method that changes the editor's subscriptions; returns whether it succeeded."""
        return (await self._link.call(ToolCall(uuid4().hex, method, dict(params)), None)).ok
