"""``subscriptions/listen``: an editor of the stateless revisions hears when its tools change, until it cancels."""

import asyncio
from typing import Any

from ...protocol.mcp import json_rpc
from ...protocol.mcp.json_rpc import INVALID_PARAMS, JsonRpcId, MessageProblem, RpcRequest
from ...protocol.mcp.mcp_result import SERVER_INFO
from ...protocol.mcp.request_envelope import SERVER_KEY, SUBSCRIPTION_KEY, RequestEnvelope
from .line_channel import LineChannel


class BridgeSubscriptions:
    """All that listen on one channel."""

    def __init__(self, lines: LineChannel) -> None:
        self._lines = lines
        # By the request's id: whether it is about tools.
        self._listening: dict[JsonRpcId, bool] = {}
        self._closed = asyncio.Event()

    def close(self) -> None:
        """End all of them, each with its answer."""
        self._closed.set()

    async def listen(self, request: RpcRequest, _: RequestEnvelope) -> dict[str, Any] | MessageProblem:
        """Tell what was subscribed to, until the channel closes."""
        wanted = request.params.get("notifications")
        if not isinstance(wanted, dict):
            return MessageProblem(INVALID_PARAMS, "params.notifications must be an object of what you want to hear of.")
        tools = wanted.get("toolsListChanged") is True
        honoured = {"toolsListChanged": True} if tools else {}
        await self._tell("notifications/subscriptions/acknowledged", request.id, notifications=honoured)
        self._listening[request.id] = tools
        try:
            await self._closed.wait()
        finally:
            del self._listening[request.id]
        return {"resultType": "complete", "_meta": {SUBSCRIPTION_KEY: request.id, SERVER_KEY: SERVER_INFO}}

    async def tools_changed(self) -> None:
        """Tell those who want to hear of it."""
        for request_id in [request_id for request_id, tools in self._listening.items() if tools]:
            await self._tell("notifications/tools/list_changed", request_id)

    async def _tell(self, method: str, request_id: JsonRpcId, **params: Any) -> None:
        params["_meta"] = {SUBSCRIPTION_KEY: request_id}
        await self._lines.write(json_rpc.notification(method, params))
