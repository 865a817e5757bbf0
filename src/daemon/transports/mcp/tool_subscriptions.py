"""``subscriptions/listen``: notifies clients of the stateless revisions when their tools change."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from ....protocol import json_rpc
from ....protocol.authorization import Authorization
from ....protocol.json_rpc import INVALID_PARAMS, INVALID_REQUEST, MessageProblem, RpcRequest
from ....protocol.mcp.mcp_result import SERVER_INFO
from ....protocol.mcp.request_envelope import SERVER_KEY, SUBSCRIPTION_KEY
from ...dispatch import Router
from ..http_io import wait_disconnected
from .mcp_caller import McpCaller

_ALIVE: Final = b": listening\n\n"
_ALIVE_EVERY_S: Final = 15.0
"""Proxies close streams that are idle for a minute."""


class ToolSubscriptions:
    """The listening clients."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._listeners: dict[asyncio.Event, Authorization] = {}
        # Listeners whose token is no longer valid.
        self._unauthorized: set[asyncio.Event] = set()
        self._closed = False

    def __repr__(self) -> str:
        return f"<ToolSubscriptions listeners={len(self._listeners)}>"

    def tools_changed(self) -> None:
        """The tool catalog has changed."""
        for listener in self._listeners:
            listener.set()

    def close_unauthorized(self, denial_reason: Callable[[Authorization], str | None]) -> None:
        """Ends the streams whose authorization is no longer valid."""
        for listener, access in self._listeners.items():
            if denial_reason(access) is not None:
                self._unauthorized.add(listener)
                listener.set()

    def close(self) -> None:
        """Ends all streams, each with its answer."""
        self._closed = True
        self.tools_changed()

    async def listen(self, request: RpcRequest, caller: McpCaller) -> bytes | MessageProblem | None:
        """Sends the subscribed notifications until the daemon shuts down; returns
        None if the client disconnected before.
        """
        wanted = request.params.get("notifications")
        if not isinstance(wanted, dict):
            return MessageProblem(
                INVALID_PARAMS, "params.notifications must be an object: the notifications to receive."
            )
        if caller.stream is None:
            return MessageProblem(INVALID_REQUEST, "Notifications are sent as events: Accept: text/event-stream.")
        tools = wanted.get("toolsListChanged") is True
        meta = {SUBSCRIPTION_KEY: request.id}
        honoured = {"toolsListChanged": True} if tools else {}
        listener = asyncio.Event()
        self._listeners[listener] = caller.access
        watch = asyncio.ensure_future(wait_disconnected(caller.receive))
        watch.add_done_callback(lambda _: listener.set())
        try:
            rev = self._rev(caller)
            await caller.stream.write(
                _event("notifications/subscriptions/acknowledged", {"notifications": honoured, "_meta": meta})
            )
            while not self._closed and listener not in self._unauthorized:
                heard = await _wait(listener)
                if watch.done():
                    return None
                changed, rev = rev != self._rev(caller), self._rev(caller)
                if changed and tools:
                    await caller.stream.write(_event("notifications/tools/list_changed", {"_meta": meta}))
                elif not heard:
                    await caller.stream.write(_ALIVE)
            result = {"resultType": "complete", "_meta": {**meta, SERVER_KEY: SERVER_INFO}}
            return json_rpc.answer(request.id, result)
        finally:
            del self._listeners[listener]
            self._unauthorized.discard(listener)
            watch.cancel()

    def _rev(self, caller: McpCaller) -> str:
        return self._router.catalog.view(caller.toolset).rev


async def _wait(listener: asyncio.Event) -> bool:
    """Whether the listener was notified before the next SSE comment is due."""
    try:
        async with asyncio.timeout(_ALIVE_EVERY_S):
            await listener.wait()
    except TimeoutError:
        return False
    listener.clear()
    return True


def _event(method: str, params: dict[str, Any]) -> bytes:
    return json_rpc.event(json_rpc.notification(method, params))
