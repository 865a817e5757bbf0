"""What a source offers besides tools: resources, resource templates and prompts. Entries are MCP's objects."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from ..tools import ToolContext

Entry = Mapping[str, Any]
"""A resource, a template or a prompt as MCP lists it."""


@dataclass(frozen=True, slots=True)
class SourcePrompt:
    """A prompt of a source under its name in this daemon."""

    name: str
    """The source's own name."""
    entry: Entry
    """With this daemon's name."""
    withheld: str | None = None
    """Why callers do not get it, as a sentence: it has changed since it was pinned."""


@dataclass(frozen=True, slots=True)
class SourceContent:
    """The latest listing of one source. The lists are empty until the source has answered."""

    resources: Mapping[str, Entry] = field(default_factory=dict)
    """By URI, in the source's order."""
    templates: Mapping[str, Entry] = field(default_factory=dict)
    """By URI template."""
    prompts: Mapping[str, SourcePrompt] = field(default_factory=dict)
    """By this daemon's names, quarantined ones included."""
    reads: bool = False
    """The source answers ``read_resource``: it may have more resources than it lists."""
    completes: bool = False
    """The source answers ``complete``."""
    subscribes: bool = False
    """The source reports changes of resources."""
    timeout_s: float | None = None
    """The default timeout of a request to it."""


class ContentSource(Protocol):
    """The resources and prompts of a source.

    Its methods raise a ``CallError`` if the source does not answer; ``NotFoundError`` if it has no such resource.
    """

    @property
    def latest(self) -> SourceContent:
        """The latest listing."""
        ...

    async def read_resource(self, uri: str, context: ToolContext) -> dict[str, Any]:
        """The result of ``resources/read``."""
        ...

    async def get_prompt(self, name: str, arguments: Mapping[str, str], context: ToolContext) -> dict[str, Any]:
        """The result of ``prompts/get``; ``name`` is the source's own."""
        ...

    async def complete(self, params: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
        """The result of ``completion/complete``; a prompt in ``params`` has the source's own name."""
        ...

    def follow(self, uris: frozenset[str]) -> None:
        """Sets the resources whose changes are reported; never blocks, and stays in force after a reconnect."""
        ...


@runtime_checkable
class OffersContent(Protocol):
    """A source that may offer more than tools."""

    @property
    def offered(self) -> ContentSource:
        """Its resources and prompts."""
        ...


class SourceEvents(Protocol):
    """Receives what sources announce. Never blocks."""

    def content_changed(self, source: str) -> None:
        """The source lists other resources or prompts."""
        ...

    def resource_updated(self, source: str, uri: str) -> None:
        """The content of a followed resource has changed."""
        ...

    def logged(self, source: str, level: str, logger: str | None, data: Any) -> None:
        """The source has sent a log message."""
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
