"""Notifications to an editor: progress of its calls, and changes of its tool list."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from ...client import OnProgress
from ...protocol import json_rpc
from ...protocol.json_rpc import INVALID_PARAMS, JsonRpcId, MessageProblem, RpcRequest
from ...protocol.mcp.mcp_call import ProgressCounter
from ...protocol.mcp.mcp_result import SERVER_INFO
from ...protocol.mcp.request_envelope import SERVER_KEY, SUBSCRIPTION_KEY, RequestEnvelope
from ...protocol.tool_call import Progress
from .line_channel import LineChannel


class BridgeSubscriptions:
    """The ``subscriptions/listen`` requests of one channel, by which editors of the stateless revisions follow changes
    of the tool list."""

    def __init__(self, lines: LineChannel) -> None:
        self._lines = lines
        # Request id: whether it subscribes to tool list changes.
        self._listening: dict[JsonRpcId, bool] = {}
        self._closed = asyncio.Event()

    def close(self) -> None:
        """End all subscriptions, each with its answer."""
        self._closed.set()

    async def listen(self, request: RpcRequest, _: RequestEnvelope) -> dict[str, Any] | MessageProblem:
        """Serve one subscription until the channel closes or the editor cancels it."""
        wanted = request.params.get("notifications")
        if not isinstance(wanted, dict):
            return MessageProblem(
                INVALID_PARAMS, "params.notifications must be an object that names the notifications."
            )
        tools = wanted.get("toolsListChanged") is True
        accepted = {"toolsListChanged": True} if tools else {}
        await self._notify("notifications/subscriptions/acknowledged", request.id, notifications=accepted)
        self._listening[request.id] = tools
        try:
            await self._closed.wait()
        finally:
            del self._listening[request.id]
        return {"resultType": "complete", "_meta": {SUBSCRIPTION_KEY: request.id, SERVER_KEY: SERVER_INFO}}

    async def tools_changed(self) -> None:
        """Notify the subscribers."""
        for request_id in [request_id for request_id, tools in self._listening.items() if tools]:
            await self._notify("notifications/tools/list_changed", request_id)

    async def _notify(self, method: str, request_id: JsonRpcId, **params: Any) -> None:
        params["_meta"] = {SUBSCRIPTION_KEY: request_id}
        await self._lines.write(json_rpc.notification(method, params))


@asynccontextmanager
async def progress_reports(lines: LineChannel, token: str | int | None) -> AsyncIterator[OnProgress | None]:
    """The progress callback of one call while the block runs; None if the request has no progress token.

    If the editor reads too slowly, only the latest report is sent.
    """
    if token is None:
        yield None
        return
    reports = _Reports(lines, token)
    sending = asyncio.create_task(reports.send_all())
    try:
        yield reports.add
    finally:
        sending.cancel()
        await asyncio.wait({sending})
    await reports.send_latest()


class _Reports:
    def __init__(self, lines: LineChannel, token: str | int) -> None:
        self._lines = lines
        self._token = token
        self._counter = ProgressCounter()
        self._latest: Progress | None = None
        self._changed = asyncio.Event()

    def add(self, progress: Progress) -> None:
        self._latest = progress
        self._changed.set()

    async def send_all(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self.send_latest()

    async def send_latest(self) -> None:
        progress, self._latest = self._latest, None
        if progress is not None:
            params = self._counter.count(progress, self._token)
            await self._lines.write(json_rpc.notification("notifications/progress", params))
