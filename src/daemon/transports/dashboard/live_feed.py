"""Sends the live page its changes: one task for all pages, and nothing while no page is open.

Every 250 ms the task renders the state once for each viewer, and passes it on if it has changed. A page that reads
slowly gets only the latest state.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Any, Final

import msgspec
import structlog

from ...observability.live_activity import ActivitySecond, LiveActivity
from .dashboard_port import Viewer
from .event_response import TooManyPagesError, server_sent_event

INTERVAL_S: Final = 0.25
TICKS_PER_SECOND: Final = 4
MAX_PAGES: Final = 64
"""The most live pages of all viewers together."""
MAX_PAGES_PER_VIEWER: Final = 16

_log = structlog.get_logger(__name__)


class _LivePage:
    """The unsent events of one page. The events are encoded once for all pages of a viewer."""

    def __init__(self, viewer: Viewer) -> None:
        self.viewer = viewer
        self.events: dict[str, bytes] = {}
        self.ready = asyncio.Event()

    def put(self, name: str, event: bytes) -> None:
        """Replace the unsent event of this name."""
        self.events[name] = event
        self.ready.set()


class LiveFeed:
    """The open live pages."""

    def __init__(
        self,
        activity: LiveActivity,
        render: Callable[[Viewer], str],
        is_valid: Callable[[Viewer], bool],
        earlier: Callable[[Viewer], Awaitable[Iterable[dict[str, Any]]]],
    ) -> None:
        """``render`` returns the HTML of the live part for a viewer, ``earlier`` the calls that ended before its first
        page was opened, newest first.
        """
        self._activity = activity
        self._render = render
        self._is_valid = is_valid
        self._earlier = earlier
        self._pages: list[_LivePage] = []
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._failing: set[str | None] = set()
        """The viewers for whom the last rendering failed."""

    def __repr__(self) -> str:
        return f"<LiveFeed pages={len(self._pages)}>"

    async def events(self, viewer: Viewer) -> AsyncGenerator[bytes, None]:
        """The server-sent events of one page, until its session ends or the feed closes.

        Raises:
            TooManyPagesError: too many live pages are open.
        """
        if len(self._pages) >= MAX_PAGES or self._pages_of(viewer) >= MAX_PAGES_PER_VIEWER or self._closed:
            raise TooManyPagesError
        page = _LivePage(viewer)
        self._pages.append(page)
        self._activity.watch(viewer.sees)
        try:
            if not self._activity.ended_calls(viewer.sees):
                self._activity.add_earlier(viewer.sees, await self._earlier(viewer))
            page.put("html", self._html(viewer))
            page.put("seconds", _seconds(self._activity.seconds(viewer.sees)))
            if self._task is None:
                self._task = asyncio.create_task(self._run(), name="dashboard feed")
            while not self._closed:
                await page.ready.wait()
                page.ready.clear()
                if not self._is_valid(viewer):
                    return
                pieces, page.events = page.events, {}
                if pieces:
                    yield b"".join(pieces.values())
        finally:
            self._pages.remove(page)
            self._activity.leave(viewer.sees)
            if not self._pages and self._task is not None:
                self._task.cancel()
                self._task = None

    def close(self) -> None:
        """End all pages' streams."""
        self._closed = True
        for page in self._pages:
            page.ready.set()

    def _pages_of(self, viewer: Viewer) -> int:
        return sum(page.viewer.principal == viewer.principal for page in self._pages)

    async def _run(self) -> None:
        tick = 0
        shown: dict[str | None, bytes | None] = {}
        while True:
            await asyncio.sleep(INTERVAL_S)
            tick += 1
            if tick % TICKS_PER_SECOND == 0:
                self._activity.end_second()
            rendered: dict[str | None, bytes | None] = {}
            seconds: dict[str | None, bytes] = {}
            for page in self._pages:
                sees = page.viewer.sees
                if sees not in rendered:
                    rendered[sees] = self._html_or_none(page.viewer)
                html = rendered[sees]
                if html is not None and html != shown.get(sees):
                    page.put("html", html)
                if tick % TICKS_PER_SECOND == 0:
                    if sees not in seconds:
                        seconds[sees] = _seconds(self._activity.seconds(sees)[-1:])
                    page.put("seconds", seconds[sees])
            shown = rendered

    def _html_or_none(self, viewer: Viewer) -> bytes | None:
        """None if rendering fails: the pages keep what they show, and the next tick tries again."""
        try:
            html = self._html(viewer)
        except Exception:  # noqa: BLE001 - one task serves all pages; it must not end
            # Four lines a second would fill the log.
            if viewer.sees not in self._failing:
                _log.exception("the live part of the dashboard cannot be rendered")
            self._failing.add(viewer.sees)
            return None
        self._failing.discard(viewer.sees)
        return html

    def _html(self, viewer: Viewer) -> bytes:
        """The event with the live part. Its lines are joined: each would become a line of the event."""
        html = " ".join(map(str.lstrip, self._render(viewer).split("\n")))
        return server_sent_event("html", html.encode(errors="replace"))


def _seconds(seconds: list[ActivitySecond]) -> bytes:
    """The event with rows of ``[unix time, calls, errors, p50 in ms, p99 in ms]``."""
    rows = msgspec.json.encode([[s.at, s.calls, s.errors, s.p50_ms, s.p99_ms] for s in seconds])
    return server_sent_event("seconds", rows)
