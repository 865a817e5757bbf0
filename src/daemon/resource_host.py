"""Connects the catalog of resources and prompts with sources, results and transports."""

from typing import Any, Protocol

from ..resource_catalog import CatalogMethods, ConversationReader, OwnResources, ResourceFollowers, ResultReader
from ..sources import SourceManager
from .dispatch import Router
from .observability.daemon_view import LiveDaemonView


class DaemonParts(Protocol):
    """The parts of the daemon that the catalog uses; they are created after it."""

    sources: SourceManager
    view: LiveDaemonView
    router: Router


class ResourceHost:
    """Implements ``sources.SourceEvents``."""

    def __init__(self, results: ResultReader, conversations: ConversationReader, daemon: DaemonParts) -> None:
        self._daemon = daemon
        own = OwnResources(results, conversations, lambda: daemon.view)
        self.methods = CatalogMethods(lambda: daemon.sources.offering, own)
        self.followers = ResourceFollowers(lambda: daemon.sources.offering, self._callers)

    def __repr__(self) -> str:
        return f"<ResourceHost {self.methods!r}>"

    def content_changed(self, source: str) -> None:
        self.followers.content_changed(source)

    def resource_updated(self, source: str, uri: str) -> None:
        self.followers.resource_updated(source, uri)

    def logged(self, source: str, level: str, logger: str | None, data: Any) -> None:
        self.followers.logged(source, level, logger, data)

    def taken_prompts(self, source: str) -> set[str]:
        catalog = self._daemon.router.catalog
        return self.methods.taken_prompts(source, catalog.view(catalog.default))

    def _callers(self, source: str) -> set[str]:
        """The principals with a running call of a source."""
        return {call.session.principal.name for call in self._daemon.router.calls if call.tool.source == source}
