"""Publishes the tools of the sources: binds their arguments and builds the catalog in a thread, then replaces the
catalog.

With a thousand tools this takes seconds, during which calls continue. Changes during that time are published together.
"""

import asyncio
from collections.abc import Callable

import structlog

from ..tools import BoundValue, ToolBinder, ToolCatalog, ToolRegistry, in_tool_thread

_log = structlog.get_logger("toold.daemon")


class CatalogPublisher:
    """Builds the catalog of the installed tools and the tools of the sources, one catalog at a time."""

    def __init__(
        self,
        binder: ToolBinder,
        *,
        registry: Callable[[], ToolRegistry],
        make_catalog: Callable[[ToolRegistry], ToolCatalog],
        current: Callable[[], ToolCatalog],
        replace: Callable[[ToolCatalog], None],
    ) -> None:
        """``registry`` returns the tools without bound arguments, ``current`` the catalog that ``replace`` replaces."""
        self._binder = binder
        self._registry = registry
        self._make_catalog = make_catalog
        self._current = current
        self._replace = replace
        self._requested = 0
        self._published = 0
        # Replaced at each publication.
        self._next = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        # The binding errors of the latest catalog; each is logged once.
        self._errors: frozenset[str] = frozenset()

    @property
    def values(self) -> tuple[BoundValue, ...]:
        """The bound values of the next catalog."""
        return self._binder.values

    def bind(self, binder: ToolBinder) -> None:
        """Use these values in the next catalogs."""
        self._binder = binder

    def first(self) -> ToolCatalog:
        """The catalog at the start, built at once."""
        return self._make(self._binder, self._registry(), None)

    def request(self) -> None:
        """Requests a new catalog, because tools, their bound values or toolsets have changed. Returns at once."""
        self._requested += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._publish(), name="publish tools")

    async def published(self) -> None:
        """Wait until all changes so far are published."""
        requested = self._requested
        while self._published < requested:
            await self._next.wait()

    async def close(self) -> None:
        """Publish nothing more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _publish(self) -> None:
        while self._published < self._requested:
            requested = self._requested
            try:
                earlier = self._current()
                self._replace(await in_tool_thread(self._make, self._binder, self._registry(), earlier))
            except Exception:  # noqa: BLE001 - the earlier catalog stays; a later change is published
                _log.exception("tools could not be published")
            self._published = requested
            published, self._next = self._next, asyncio.Event()
            published.set()

    def _make(self, binder: ToolBinder, registry: ToolRegistry, earlier: ToolCatalog | None) -> ToolCatalog:
        bound, errors = binder.bind(registry)
        for error in errors:
            if error not in self._errors:
                _log.warning("tool omitted", reason=error)
        self._errors = frozenset(errors)
        catalog = self._make_catalog(bound)
        if earlier is not None:
            catalog.prepare(earlier)  # here, so that the first client does not wait for it
        return catalog
