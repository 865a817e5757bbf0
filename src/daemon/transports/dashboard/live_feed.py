"""Sends changes to the live pages: one task for all pages, which runs only while a page is open.

Every 250 ms the task renders the open pages, each page once per viewer, and sends what has changed. A page that reads
slowly gets only the latest state.

The page Now gets the events ``html`` and ``seconds``. The page of a running call, and that of a run, get ``html`` and
``calls``, and ``ended`` when the call no longer runs.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
import structlog

from ...observability.live_activity import ActivitySecond, LiveActivity
from .dashboard_port import Viewer
from .event_response import TooManyPagesError, server_sent_event

INTERVAL_S: Final = 0.25
TICKS_PER_SECOND: Final = 4
MAX_PAGES: Final = 64
"""The maximum number of live pages of all viewers together."""
MAX_PAGES_PER_VIEWER: Final = 16
ENDED: Final = "ended"

_log = structlog.get_logger(__name__)

Subject = str | None
"""The subject of the page: the running call with this id, or None for the page Now."""
_Shown = tuple[str | None, Subject]
"""The key of a page's content: ``Viewer.sees`` and the subject. Pages with equal keys show the same."""


class _LivePage:
    """The unsent events of one page. The events are encoded once for all pages that show the same."""

    def __init__(self, viewer: Viewer, subject: Subject) -> None:
        self.viewer = viewer
        self.subject = subject
        self.events: dict[str, bytes] = {}
        self.latest: dict[str, bytes] = {}
        """The last event of each name, sent or not."""
        self.ready = asyncio.Event()

    @property
    def shown(self) -> _Shown:
        return self.viewer.sees, self.subject

    @property
    def watches(self) -> bool:
        """Whether it shows the calls that end."""
        return self.subject is None

    def put(self, name: str, event: bytes) -> None:
        """Replace the unsent event of this name, unless the page already has an equal one."""
        if event == self.latest.get(name):
            return
        self.events[name] = self.latest[name] = event
        self.ready.set()


class LiveFeed:
    """The open live pages."""

    def __init__(
        self,
        activity: LiveActivity,
        render: Callable[[Viewer, Subject], Mapping[str, str] | None],
        is_valid: Callable[[Viewer], bool],
        earlier: Callable[[Viewer], Awaitable[Iterable[dict[str, Any]]]],
    ) -> None:
        """``render`` returns a subject's data for a viewer, by event name; None if the call no longer runs. ``earlier``
        returns the calls that ended before the viewer's first page Now was opened, newest first.
        """
        self._activity = activity
        self._render = render
        self._is_valid = is_valid
        self._earlier = earlier
        self._pages: list[_LivePage] = []
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._failing: set[_Shown] = set()
        """The subjects whose last rendering failed."""

    def __repr__(self) -> str:
        return f"<LiveFeed pages={len(self._pages)}>"

    async def events(self, viewer: Viewer, subject: Subject = None) -> AsyncGenerator[bytes, None]:
        """The server-sent events of one page, until its call or its session ends, or the feed closes.

        Raises:
            TooManyPagesError: too many live pages are open.
        """
        if len(self._pages) >= MAX_PAGES or self._pages_of(viewer) >= MAX_PAGES_PER_VIEWER or self._closed:
            raise TooManyPagesError
        page = _LivePage(viewer, subject)
        self._pages.append(page)
        if page.watches:
            self._activity.watch(viewer.sees)
        try:
            await self._begin(page)
            while not self._closed:
                await page.ready.wait()
                page.ready.clear()
                if not self._is_valid(viewer):
                    return
                pieces, page.events = page.events, {}
                if pieces:
                    yield b"".join(pieces.values())
                if ENDED in pieces:
                    return
        finally:
            self._leave(page)

    def close(self) -> None:
        """End all pages' streams."""
        self._closed = True
        for page in self._pages:
            page.ready.set()

    async def _begin(self, page: _LivePage) -> None:
        """Put the first events of a page."""
        sees = page.viewer.sees
        if page.watches and not self._activity.ended_calls(sees):
            self._activity.add_earlier(sees, await self._earlier(page.viewer))
        for name, event in self._events_of(page).items():
            page.put(name, event)
        if page.watches:
            page.put("seconds", _seconds(self._activity.seconds(sees)))
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="dashboard feed")

    def _leave(self, page: _LivePage) -> None:
        self._pages.remove(page)
        if page.watches:
            self._activity.leave(page.viewer.sees)
        if not self._pages and self._task is not None:
            self._task.cancel()
            self._task = None

    def _pages_of(self, viewer: Viewer) -> int:
        return sum(page.viewer.principal == viewer.principal for page in self._pages)

    async def _run(self) -> None:
        tick = 0
        while True:
            await asyncio.sleep(INTERVAL_S)
            tick += 1
            if tick % TICKS_PER_SECOND == 0:
                self._activity.end_second()
            rendered: dict[_Shown, Mapping[str, bytes]] = {}
            seconds: dict[str | None, bytes] = {}
            for page in self._pages:
                if page.shown not in rendered:
                    rendered[page.shown] = self._events_or_none(page)
                for name, event in rendered[page.shown].items():
                    page.put(name, event)
                if tick % TICKS_PER_SECOND == 0 and page.watches:
                    sees = page.viewer.sees
                    if sees not in seconds:
                        seconds[sees] = _seconds(self._activity.seconds(sees)[-1:])
                    page.put("seconds", seconds[sees])

    def _events_or_none(self, page: _LivePage) -> Mapping[str, bytes]:
        """Returns no events if rendering fails: the pages stay unchanged until the next tick."""
        try:
            events = self._events_of(page)
        except Exception:  # noqa: BLE001 - one task serves all pages; it must not end
            # Four lines a second would fill the log.
            if page.shown not in self._failing:
                _log.exception("the live part of the dashboard cannot be rendered")
            self._failing.add(page.shown)
            return {}
        self._failing.discard(page.shown)
        return events

    def _events_of(self, page: _LivePage) -> Mapping[str, bytes]:
        """The events with the content of a page. The lines of HTML are joined, because each would become a separate
        line of the event."""
        data = self._render(page.viewer, page.subject)
        if data is None:
            return {ENDED: server_sent_event(ENDED, b"")}
        lines = {name: " ".join(map(str.lstrip, text.split("\n"))) for name, text in data.items()}
        return {name: server_sent_event(name, line.encode(errors="replace")) for name, line in lines.items()}


def _seconds(seconds: list[ActivitySecond]) -> bytes:
    """The event with rows of ``[unix time, calls, errors, p50 in ms, p99 in ms]``."""
    rows = msgspec.json.encode([[s.at, s.calls, s.errors, s.p50_ms, s.p99_ms] for s in seconds])
    return server_sent_event("seconds", rows)
