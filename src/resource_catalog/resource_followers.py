"""The clients that follow changes of lists, updates of single resources, and log messages of sources. Bounded, and in
memory only.
"""

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import msgspec

from ..protocol.error_codes import InvalidArgumentsError, NotFoundError, OverCapacityError
from ..protocol.tool_call import Principal
from ..sources import ContentSource
from ..tools import ToolsetView
from .resource_owners import OwnedResource, owner_of, qualified, visible_sources

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""MCP's levels of log messages, the least severe first."""
MAX_FOLLOWED: Final = 100
"""The maximum number of resources that one client follows."""
MAX_FOLLOWERS: Final = 1000
"""The maximum number of followers of all principals together."""
MAX_FOLLOWERS_PER_PRINCIPAL: Final = 100
MAX_LOG_MESSAGES: Final = 100
"""The log messages that a client gets per ``LOG_WINDOW_S``; further ones are dropped, and the next window reports their
number."""
LOG_WINDOW_S: Final = 10.0
MAX_LOG_BYTES: Final = 16 * 1024
"""Log messages with more data are truncated."""

RESOURCES_CHANGED: Final = "notifications/resources/list_changed"
PROMPTS_CHANGED: Final = "notifications/prompts/list_changed"
RESOURCE_UPDATED: Final = "notifications/resources/updated"
LOG_MESSAGE: Final = "notifications/message"

Notify = Callable[[str, Mapping[str, Any]], None]
"""Queues a notification, by its method and parameters. Never blocks; may drop notifications that a slow reader has not
read."""


class Follower:
    """One client, and everything that it follows."""

    def __init__(self, principal: Principal, view: Callable[[], ToolsetView], notify: Notify) -> None:
        self.principal = principal
        self.view = view
        """Its current tools, which determine the sources that it sees."""
        self.notify = notify
        self.followed: dict[str, OwnedResource] = {}
        """The resources, by the URIs that the client uses for them."""
        self.lists: Collection[str] = (RESOURCES_CHANGED, PROMPTS_CHANGED)
        """The lists whose changes it gets."""
        self.level: int | None = None
        """The index in ``LEVELS`` of the least severe log messages that it gets; None: it gets none."""
        self._window_start = 0.0
        self._sent = 0

    def __repr__(self) -> str:
        return f"<Follower of {self.principal.name} follows={len(self.followed)}>"

    def admits_message(self, now: float) -> int | None:
        """Counts a log message. Returns how many were dropped in the window that has ended; None to drop this one."""
        dropped = 0
        if now - self._window_start >= LOG_WINDOW_S:
            dropped = max(0, self._sent - MAX_LOG_MESSAGES)
            self._window_start, self._sent = now, 0
        self._sent += 1
        return dropped if self._sent <= MAX_LOG_MESSAGES else None


class ResourceFollowers:
    """All followers. Informs each source about its followed resources, and each follower about changes."""

    def __init__(
        self,
        sources: Callable[[], Mapping[str, ContentSource]],
        callers: Callable[[str], Collection[str]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``callers`` returns the names of the principals that have a running call of a source."""
        self._sources = sources
        self._callers = callers
        self._clock = clock
        self._followers: set[Follower] = set()

    def __repr__(self) -> str:
        return f"<ResourceFollowers {len(self._followers)}>"

    def add(self, follower: Follower) -> None:
        """Adds a client.

        Raises:
            OverCapacityError: too many clients follow something already.
        """
        of_principal = sum(other.principal == follower.principal for other in self._followers)
        if len(self._followers) >= MAX_FOLLOWERS or of_principal >= MAX_FOLLOWERS_PER_PRINCIPAL:
            raise OverCapacityError("Too many clients listen for notifications already; close one, or try again later.")
        self._followers.add(follower)

    def remove(self, follower: Follower) -> None:
        """Removes a client and everything that it follows."""
        self._followers.discard(follower)
        sources = {owned.source for owned in follower.followed.values()}
        follower.followed.clear()
        self._tell(sources)

    def change(self, follower: Follower, method: str, params: Mapping[str, Any]) -> None:
        """Executes a method of ``FOLLOWING_METHODS``. Raises the errors of the methods below."""
        match method:
            case "resources/subscribe":
                self.follow(follower, params.get("uri"))
            case "resources/unsubscribe":
                self.unfollow(follower, params.get("uri"))
            case _:
                self.set_level(follower, params.get("level"))

    def follow(self, follower: Follower, uri: object) -> None:
        """Makes a client follow a resource of a source.

        Raises:
            InvalidArgumentsError: ``uri`` is not a text, the client follows too many, or the changes are not
                reported.
            NotFoundError: the client's sources have no such resource.
        """
        if not isinstance(uri, str) or not uri:
            raise InvalidArgumentsError("params.uri: must be the URI of a resource.")
        if uri in follower.followed:
            return
        if len(follower.followed) >= MAX_FOLLOWED:
            raise InvalidArgumentsError(
                f"A client can follow {MAX_FOLLOWED} resources; end another subscription first."
            )
        view = follower.view()
        sources = visible_sources(self._sources(), view)
        owned = owner_of(sources, view.tools.values(), uri)
        if owned is None:
            raise NotFoundError(
                f"No source has a resource {uri[:200]!r}; changes of the daemon's own resources are not reported."
            )
        if not sources[owned.source].latest.subscribes:
            raise InvalidArgumentsError(f"The source {owned.source} does not report changes of its resources.")
        follower.followed[uri] = owned
        self._tell({owned.source})

    def unfollow(self, follower: Follower, uri: object) -> None:
        """Stops following a resource; no effect if the client does not follow it."""
        owned = follower.followed.pop(uri, None) if isinstance(uri, str) else None
        if owned is not None:
            self._tell({owned.source})

    def set_level(self, follower: Follower, level: object) -> None:
        """Sets the least severe level of the log messages that a client gets.

        Raises:
            InvalidArgumentsError: the level is not in ``LEVELS``.
        """
        if not isinstance(level, str) or level not in LEVELS:
            raise InvalidArgumentsError(f"params.level: must be one of {', '.join(LEVELS)}.")
        follower.level = LEVELS.index(level)

    def _tell(self, names: Collection[str]) -> None:
        sources = self._sources()
        for name in names:
            if name in sources:
                wanted = {
                    owned.uri
                    for follower in self._followers
                    for owned in follower.followed.values()
                    if owned.source == name
                }
                sources[name].follow(frozenset(wanted))

    # --- events of sources -------------------------------------------------------------------------------------------

    def content_changed(self, source: str) -> None:
        """Informs the followers that the lists of a source have changed."""
        for follower in tuple(self._followers):
            if source in visible_sources(self._sources(), follower.view()):
                for method in follower.lists:
                    follower.notify(method, {})

    def resource_updated(self, source: str, uri: str) -> None:
        """Informs the followers that a resource has changed. A followed resource includes those below it, so its URI
        may be shorter."""
        for follower in tuple(self._followers):
            for shown, owned in tuple(follower.followed.items()):
                if owned.source == source and (uri == owned.uri or uri.startswith(f"{owned.uri.rstrip('/')}/")):
                    changed = shown if uri == owned.uri else qualified(source, uri) if shown != owned.uri else uri
                    follower.notify(RESOURCE_UPDATED, {"uri": changed})

    def logged(self, source: str, level: str, logger: str | None, data: Any) -> None:
        """Passes on a log message of a source. Operators always get it. Another principal gets it only while the source
        runs no other principal's calls, because the message may contain their data.
        """
        severity = LEVELS.index(level) if level in LEVELS else LEVELS.index("info")
        interested = [
            follower for follower in self._followers if follower.level is not None and follower.level <= severity
        ]
        if not interested:
            return
        callers = set(self._callers(source))
        shown = _bounded(data)
        name = source if not logger else f"{source}/{logger[:100]}"
        now = self._clock()
        for follower in interested:
            permitted = follower.principal.operator or callers == {follower.principal.name}
            if not permitted or source not in visible_sources(self._sources(), follower.view()):
                continue
            dropped = follower.admits_message(now)
            if dropped:
                text = f"{dropped} log messages were dropped: more than {MAX_LOG_MESSAGES} in {LOG_WINDOW_S:g} s."
                follower.notify(LOG_MESSAGE, {"level": "warning", "logger": "toold", "data": text})
            if dropped is not None:
                follower.notify(LOG_MESSAGE, {"level": LEVELS[severity], "logger": name, "data": shown})


def _bounded(data: Any) -> Any:
    """Returns the data of a log message, or the beginning of its text if it is long."""
    try:
        encoded = msgspec.json.encode(data)
    except (TypeError, ValueError):
        return "the source's message is not JSON"
    if len(encoded) <= MAX_LOG_BYTES:
        return data
    text = data if isinstance(data, str) else encoded.decode()
    return f"{text[:MAX_LOG_BYTES]}…"
