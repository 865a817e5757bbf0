"""Notifications to an editor: progress of its calls, and changes of its tool list."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

from ...client import OnProgress
from ...protocol import json_rpc
from ...protocol.json_rpc import INVALID_PARAMS, JsonRpcId, MessageProblem, RpcRequest
from ...protocol.mcp.mcp_call import ProgressCounter
from ...protocol.mcp.mcp_result import SERVER_INFO
from ...protocol.mcp.request_envelope import SERVER_KEY, SUBSCRIPTION_KEY, RequestEnvelope
from ...protocol.tool_call import Progress
from .line_channel import LineChannel

_LISTS: Final = {
    "toolsListChanged": "notifications/tools/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
}
_UPDATED: Final = "notifications/resources/updated"


class _Listening(NamedTuple):
    """The content of one subscription: the methods of changed lists, and the URIs of resources."""

    methods: frozenset[str]
    uris: frozenset[str]


class BridgeSubscriptions:
    """The ``subscriptions/listen`` requests of one channel, by which editors of the stateless revisions follow changes
    of lists and resources. ``follow`` calls a method of the daemon, and returns whether it succeeded."""

    def __init__(self, lines: LineChannel, follow: Callable[[str, dict[str, Any]], Awaitable[bool]]) -> None:
        self._lines = lines
        self._follow = follow
        # By request id.
        self._listening: dict[JsonRpcId, _Listening] = {}
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
        accepted: dict[str, Any] = {name: True for name in _LISTS if wanted.get(name) is True}
        uris = wanted.get("resourceSubscriptions")
        followed = [
            uri
            for uri in (uris if isinstance(uris, list) else ())
            if isinstance(uri, str) and await self._follow("resources/subscribe", {"uri": uri})
        ]
        methods = frozenset(_LISTS[name] for name in accepted)
        self._listening[request.id] = _Listening(methods, frozenset(followed))
        try:
            accepted |= {"resourceSubscriptions": followed} if followed else {}
            await self._notify("notifications/subscriptions/acknowledged", request.id, {"notifications": accepted})
            await self._closed.wait()
        finally:
            del self._listening[request.id]
            others = {uri for listening in self._listening.values() for uri in listening.uris}
            for uri in set(followed) - others:
                await self._follow("resources/unsubscribe", {"uri": uri})
        return {"resultType": "complete", "_meta": {SUBSCRIPTION_KEY: request.id, SERVER_KEY: SERVER_INFO}}

    async def changed(self, method: str, params: dict[str, Any]) -> None:
        """Notify the subscribers of a change."""
        uri = params.get("uri")
        for request_id, listening in tuple(self._listening.items()):
            below = any(uri == own or str(uri).startswith(f"{own.rstrip('/')}/") for own in listening.uris)
            if method in listening.methods or (method == _UPDATED and below):
                await self._notify(method, request_id, params)

    async def _notify(self, method: str, request_id: JsonRpcId, params: dict[str, Any]) -> None:
        await self._lines.write(json_rpc.notification(method, {**params, "_meta": {SUBSCRIPTION_KEY: request_id}}))


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
