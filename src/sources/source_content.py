"""The resources, resource templates and prompts of a source. Entries are MCP's objects."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from ..tools import ToolContext

Entry = Mapping[str, Any]
"""A resource, a template or a prompt in MCP's format."""


@dataclass(frozen=True, slots=True)
class SourcePrompt:
    """A prompt of a source under its name in this daemon."""

    name: str
    """The prompt's name at the source."""
    entry: Entry
    """The prompt's entry, with its name in this daemon."""
    withheld: str | None = None
    """A sentence that says why callers do not get the prompt, for example because it has changed since it was
    pinned.
    """


@dataclass(frozen=True, slots=True)
class SourceContent:
    """The latest listing of one source. The lists are empty until the source has answered."""

    resources: Mapping[str, Entry] = field(default_factory=dict)
    """The resources by URI, in the source's order."""
    templates: Mapping[str, Entry] = field(default_factory=dict)
    """The templates by URI template."""
    prompts: Mapping[str, SourcePrompt] = field(default_factory=dict)
    """The prompts by their names in this daemon, including quarantined prompts."""
    reads: bool = False
    """Whether the source answers ``read_resource``. It may then have more resources than it lists."""
    completes: bool = False
    """Whether the source answers ``complete``."""
    subscribes: bool = False
    """Whether the source reports changes of resources."""
    timeout_s: float | None = None
    """The default timeout of a request to the source."""


class ContentSource(Protocol):
    """The resources and prompts of a source.

    Its methods raise a ``CallError`` if the source does not answer; ``NotFoundError`` if it has no such resource.
    """

    @property
    def latest(self) -> SourceContent:
        """The latest listing of the source."""
        ...

    async def read_resource(self, uri: str, context: ToolContext) -> dict[str, Any]:
        """The result of ``resources/read``."""
        ...

    async def get_prompt(self, name: str, arguments: Mapping[str, str], context: ToolContext) -> dict[str, Any]:
        """The result of ``prompts/get``; ``name`` is the prompt's name at the source."""
        ...

    async def complete(self, params: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
        """The result of ``completion/complete``; a prompt in ``params`` has its name at the source."""
        ...

    def follow(self, uris: frozenset[str]) -> None:
        """Sets the resources whose changes are reported, also after a reconnect. Never blocks."""
        ...


@runtime_checkable
class OffersContent(Protocol):
    """A source that may also have resources and prompts."""

    @property
    def offered(self) -> ContentSource:
        """The source's resources and prompts."""
        ...


class SourceEvents(Protocol):
    """Receives the announcements of sources. Never blocks."""

    def content_changed(self, source: str) -> None:
        """Reports that the source's list of resources or prompts has changed."""
        ...

    def resource_updated(self, source: str, uri: str) -> None:
        """Reports that the content of a subscribed resource has changed."""
        ...

    def logged(self, source: str, level: str, logger: str | None, data: Any) -> None:
        """Reports a log message of the source."""
        ...

    def taken_prompts(self, source: str) -> Container[str]:
        """The names of the prompts of the daemon and of other sources."""
        ...


class NoSourceEvents:
    """Ignores all events. Implements ``SourceEvents``."""

    def content_changed(self, source: str) -> None:
        pass

    def resource_updated(self, source: str, uri: str) -> None:
        pass

    def logged(self, source: str, level: str, logger: str | None, data: Any) -> None:
        pass

    def taken_prompts(self, source: str) -> Container[str]:  # noqa: ARG002 - the signature of SourceEvents
        return ()
