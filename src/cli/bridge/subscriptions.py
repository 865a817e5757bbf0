"""``subscriptions/listen``: an editor of the stateless revisions hears when its tools change, until it cancels."""

import asyncio
from typing import Any

from ...protocol.mcp import messages
from ...protocol.mcp.envelope import SERVER_KEY, SUBSCRIPTION_KEY, Envelope
from ...protocol.mcp.messages import INVALID_PARAMS, JsonRpcId, Problem, Request
from ...protocol.mcp.results import SERVER_INFO
from .lines import Lines


class Subscriptions:
    """All that listen on one channel."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        # By the request's id: whether it is about tools.
        self._listening: dict[JsonRpcId, bool] = {}
        self._closed = asyncio.Event()

    def close(self) -> None:
        """End all of them, each with its answer."""
        self._closed.set()

    async def listen(self, request: Request, _: Envelope) -> dict[str, Any] | Problem:
        """Tell what was subscribed to, until the channel closes."""
        wanted = request.params.get("notifications")
        if not isinstance(wanted, dict):
            return Problem(INVALID_PARAMS, "params.notifications must be an object of what you want to hear of.")
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
        await self._lines.write(messages.notification(method, params))
