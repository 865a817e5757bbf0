"""GET streams: notifications to clients of the revisions with ``initialize``.

For such a client, the daemon has only its subscriptions, in memory, by its ``Mcp-Session-Id`` and its principal.
After a restart of the daemon, the client subscribes again (decision 117).
"""

import asyncio
from collections.abc import Callable
from typing import Final

from starlette.types import Receive

from ....protocol import json_rpc
from ....protocol.authorization import Authorization
from ....resource_catalog import Follower, ResourceFollowers
from ...dispatch import Router
from ..http_io import EventStream, wait_disconnected
from ..notification_queue import NotificationQueue

STREAM_GRACE_S: Final = 300.0
"""How long subscriptions last without a stream: clients reconnect within minutes."""
_ALIVE: Final = b": listening\n\n"
_ALIVE_EVERY_S: Final = 15.0
"""Shorter than a minute, after which proxies close idle streams."""
_TOOLS_CHANGED: Final = "notifications/tools/list_changed"

_Key = tuple[str, str]


class _ClientStream:
    """The subscriptions of one client, and its stream if it is open."""

    def __init__(self, access: Authorization, toolset: str, router: Router) -> None:
        self.access = access
        self.changed = asyncio.Event()
        self.queue = NotificationQueue(self.changed.set)
        self.follower = Follower(access.principal, lambda: router.catalog.view(toolset), self.queue.add)
        self.tools_rev = self.follower.view().rev
        self.stream: object | None = None
        """The open stream; a later one replaces it."""
        self.expiry: asyncio.TimerHandle | None = None
        self.ended = False


class ClientStreams:
    """The clients with subscriptions."""

    def __init__(self, router: Router, followers: ResourceFollowers) -> None:
        self._router = router
        self._followers = followers
        self._clients: dict[_Key, _ClientStream] = {}

    def __repr__(self) -> str:
        return f"<ClientStreams {len(self._clients)}>"

    def follower(self, access: Authorization, toolset: str, label: str) -> Follower:
        """The subscriptions of the client with this label.

        Raises:
            OverCapacityError: too many clients follow something already.
        """
        return self._client(access, toolset, label).follower

    def _client(self, access: Authorization, toolset: str, label: str) -> _ClientStream:
        key = (access.principal.name, label)
        client = self._clients.get(key)
        if client is None:
            client = _ClientStream(access, toolset, self._router)
            self._followers.add(client.follower)
            self._clients[key] = client
            self._expire_later(key, client)
        else:
            # The rights of the newest token apply: an older token may expire or be revoked at another time.
            client.access = access
            client.follower.principal = access.principal
        return client

    async def listen(
        self, access: Authorization, toolset: str, label: str, receive: Receive, stream: EventStream
    ) -> None:
        """Sends notifications until the client disconnects, opens another stream, or the daemon shuts down.

        Raises:
            OverCapacityError: too many clients follow something already.
        """
        key, client = (access.principal.name, label), self._client(access, toolset, label)
        client.stream = here = object()
        client.changed.set()  # ends the earlier stream
        if client.expiry is not None:
            client.expiry.cancel()
            client.expiry = None
        watch = asyncio.ensure_future(wait_disconnected(receive))
        watch.add_done_callback(lambda _: client.changed.set())
        try:
            await stream.write(_ALIVE)
            while not client.ended and client.stream is here and not watch.done():
                client.changed.clear()
                while client.stream is here and (pending := client.queue.take()) is not None:
                    await stream.write(json_rpc.event(json_rpc.notification(*pending)))
                if not await _waits(client.changed):
                    await stream.write(_ALIVE)
            if not watch.done():
                await stream.write(b"", last=True)
        finally:
            watch.cancel()
            if client.stream is here:
                client.stream = None
                self._expire_later(key, client)

    def end(self, principal: str, label: str) -> None:
        """Ends the subscriptions of a client that has ended; no effect if it has none."""
        self._remove((principal, label))

    def tools_changed(self) -> None:
        """Reports that the tool catalog has changed."""
        for client in self._clients.values():
            rev = client.follower.view().rev
            if rev != client.tools_rev:
                client.tools_rev = rev
                client.queue.add(_TOOLS_CHANGED, {})

    def close_unauthorized(self, denial_reason: Callable[[Authorization], str | None]) -> None:
        """Removes the clients whose authorization is no longer valid."""
        for key, client in tuple(self._clients.items()):
            if denial_reason(client.access) is not None:
                self._remove(key)

    def close(self) -> None:
        """Ends all streams."""
        for key in tuple(self._clients):
            self._remove(key)

    def _remove(self, key: _Key) -> None:
        client = self._clients.pop(key, None)
        if client is None:
            return
        if client.expiry is not None:
            client.expiry.cancel()
        client.ended = True
        client.changed.set()
        self._followers.remove(client.follower)

    def _expire_later(self, key: _Key, client: _ClientStream) -> None:
        if not client.ended:
            client.expiry = asyncio.get_running_loop().call_later(STREAM_GRACE_S, self._remove, key)


async def _waits(changed: asyncio.Event) -> bool:
    """Whether a change came before the next SSE comment is due."""
    try:
        async with asyncio.timeout(_ALIVE_EVERY_S):
            await changed.wait()
    except TimeoutError:
        return False
    return True
