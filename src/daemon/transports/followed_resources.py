"""The subscriptions of one WebSocket connection, and its calls of methods about resources and prompts."""

import time
from collections.abc import Callable
from contextlib import suppress

from ...protocol.error_codes import CallError, OverCapacityError
from ...protocol.frames import Notification
from ...protocol.mcp.catalog_result import CATALOG_METHODS, FOLLOWING_METHODS
from ...protocol.tool_call import Principal, ToolCall, ToolResult
from ...resource_catalog import Follower
from ...tools import Tool, ToolsetView
from ..dispatch import CallPort, Router, RunningCall, Session
from ..resource_host import ResourceHost
from .notification_queue import NotificationQueue


class FollowedResources:
    """The resources and prompts of one connection."""

    __slots__ = ("_follower", "_host", "_queue", "_view")

    def __init__(
        self, host: ResourceHost, principal: Principal, view: Callable[[], ToolsetView], wake: Callable[[], None]
    ) -> None:
        """``wake`` is called when there is a notification; it must not block."""
        self._host = host
        self._view = view
        self._queue = NotificationQueue(wake)
        self._follower = Follower(principal, view, self._queue.add)

    def __repr__(self) -> str:
        return f"<FollowedResources {self._follower!r}>"

    def begin(self) -> None:
        """Begins to receive notifications. If too many clients receive them, this one can still call the methods."""
        with suppress(OverCapacityError):
            self._host.followers.add(self._follower)

    def close(self) -> None:
        """Ends all subscriptions."""
        self._host.followers.remove(self._follower)

    def submit(
        self, router: Router, session: Session, request: ToolCall, port: CallPort
    ) -> RunningCall | ToolResult | None:
        """Submits a call of a method, which is called like a tool; returns the result of ``Router.submit``."""
        tool: Tool | None = None
        if request.name in {*CATALOG_METHODS, *FOLLOWING_METHODS}:
            methods, followers = self._host.methods, self._host.followers
            try:
                tool = methods.method_tool(request.name, request.arguments, self._view(), followers, self._follower)
            except CallError as error:
                return router.refuse(session, request, error, time.monotonic())
        return router.submit(session, request, port, tool=tool)

    def take(self) -> Notification | None:
        """The next notification to send, if there is one."""
        pending = self._queue.take()
        return None if pending is None else Notification(pending[0], dict(pending[1]))
