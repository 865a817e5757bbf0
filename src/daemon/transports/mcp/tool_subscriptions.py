"""``subscriptions/listen``: notifies clients of the stateless revisions of changed tools, resources and prompts."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from ....protocol import json_rpc
from ....protocol.authorization import Authorization
from ....protocol.error_codes import CallError
from ....protocol.json_rpc import INVALID_PARAMS, INVALID_REQUEST, MessageProblem, RpcRequest
from ....protocol.mcp.mcp_result import SERVER_INFO
from ....protocol.mcp.request_envelope import SERVER_KEY, SUBSCRIPTION_KEY
from ....resource_catalog import Follower, ResourceFollowers
from ...dispatch import Router
from ..http_io import EventStream, wait_disconnected
from ..notification_queue import NotificationQueue
from .mcp_caller import McpCaller

_ALIVE: Final = b": listening\n\n"
_LISTS: Final = {
    "toolsListChanged": "",
    "resourcesListChanged": "notifications/resources/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
}
"""The lists that clients can subscribe to; lists of tools are compared by their revision."""
_ALIVE_EVERY_S: Final = 15.0
"""Shorter than a minute, after which proxies close idle streams."""


class ToolSubscriptions:
    """The listening clients."""

    def __init__(self, router: Router, followers: ResourceFollowers) -> None:
        self._router = router
        self._followers = followers
        self._listeners: dict[asyncio.Event, Authorization] = {}
        # Listeners whose token is no longer valid.
        self._unauthorized: set[asyncio.Event] = set()
        self._closed = False

    def __repr__(self) -> str:
        return f"<ToolSubscriptions listeners={len(self._listeners)}>"

    def tools_changed(self) -> None:
        """Reports that the tool catalog has changed."""
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
        listener = asyncio.Event()
        queue = NotificationQueue(listener.set)
        follower = Follower(caller.principal, lambda: self._router.catalog.view(caller.toolset), queue.add)
        self._followers.add(follower)
        self._listeners[listener] = caller.access
        watch = asyncio.ensure_future(wait_disconnected(caller.receive))
        watch.add_done_callback(lambda _: listener.set())
        try:
            honoured = _honoured(wanted, follower, self._followers)
            return await self._serve(request, caller.stream, follower, honoured, listener, queue, watch)
        finally:
            self._followers.remove(follower)
            del self._listeners[listener]
            self._unauthorized.discard(listener)
            watch.cancel()

    async def _serve(
        self,
        request: RpcRequest,
        stream: EventStream,
        follower: Follower,
        honoured: Mapping[str, Any],
        listener: asyncio.Event,
        queue: NotificationQueue,
        watch: "asyncio.Future[None]",
    ) -> bytes | None:
        meta = {SUBSCRIPTION_KEY: request.id}
        rev = follower.view().rev
        await stream.write(
            _event("notifications/subscriptions/acknowledged", {"notifications": honoured, "_meta": meta})
        )
        while not self._closed and listener not in self._unauthorized:
            heard = bool(queue) or await _wait(listener)
            if watch.done():
                return None
            changed, rev = rev != follower.view().rev, follower.view().rev
            if changed and "toolsListChanged" in honoured:
                await stream.write(_event("notifications/tools/list_changed", {"_meta": meta}))
            while (pending := queue.take()) is not None:
                await stream.write(_event(pending[0], {**pending[1], "_meta": meta}))
            if not heard:
                await stream.write(_ALIVE)
        result = {"resultType": "complete", "_meta": {**meta, SERVER_KEY: SERVER_INFO}}
        return json_rpc.answer(request.id, result)


def _honoured(wanted: Mapping[str, Any], follower: Follower, followers: ResourceFollowers) -> dict[str, Any]:
    """Subscribes to the requested notifications; returns those that the client will get."""
    honoured: dict[str, Any] = {name: True for name in _LISTS if wanted.get(name) is True}
    follower.lists = [method for name, method in _LISTS.items() if name in honoured and method]
    uris = wanted.get("resourceSubscriptions")
    for uri in uris if isinstance(uris, list) else ():
        with suppress(CallError):
            followers.follow(follower, uri)
    if follower.followed:
        honoured["resourceSubscriptions"] = list(follower.followed)
    return honoured


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
