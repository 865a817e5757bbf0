"""Keeps the sources of this node up to date with the pins that all nodes share.

Other nodes notify this one. It also reads the revisions of all pins every few seconds, because notifications that are
sent while the connection is lost are missed.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog

from ...sources import SourceManager
from ...store import PinNews, SharedPinsPort, StoreError

POLL_S: Final = 5.0
ANNOUNCE_AGAIN_S: Final = 5.0
"""The shortest time between two notifications about the listing of a source, which may change with each reading."""

_log = structlog.get_logger("toold.cluster")


class PinWatch:
    """Listens for changes of pins and listings, and notifies the other nodes of changed listings."""

    def __init__(self, port: SharedPinsPort, sources: Callable[[], SourceManager]) -> None:
        self._port = port
        self._sources = sources
        self._wake = asyncio.Event()
        self._unannounced: set[str] = set()
        self._announced_at: dict[str, float] = {}
        self._problems: list[str] = []
        port.on_news = self._receive

    def __repr__(self) -> str:
        return f"<PinWatch unannounced={sorted(self._unannounced)}>"

    def notify(self, source: str) -> None:
        """Soon notifies the other nodes that the listing of a source has changed tools, so that they read it again."""
        now = time.monotonic()
        if now >= self._announced_at.get(source, float("-inf")) + ANNOUNCE_AGAIN_S:
            self._announced_at[source] = now
            self._unannounced.add(source)
            self._wake.set()

    async def run(self) -> None:
        """Keeps the sources up to date, until cancelled."""
        self._port.start()
        while True:
            self._wake.clear()
            try:
                await self._announce()
                problems = await self._sources().reload_pins(await self._port.revisions())
                for problem in problems:
                    if problem not in self._problems:
                        _log.warning("changed pins cannot be used", reason=problem)
                self._problems = problems
            except StoreError:
                pass  # the store reports it
            except Exception:  # noqa: BLE001 - without this loop approvals of other nodes would not be seen
                _log.exception("changed pins cannot be used")
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await self._wake.wait()

    async def _announce(self) -> None:
        while self._unannounced:
            await self._port.notify_listing(next(iter(self._unannounced)))
            self._unannounced.pop()

    def _receive(self, news: PinNews, name: str) -> None:
        if news == "pins":
            self._wake.set()
            return
        with suppress(LookupError):  # the nodes have different sources; `toold status` reports this
            self._sources().refresh_one(name)
