"""The supported revisions of MCP and the differences between them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class McpRevision:
    """One dated revision of the specification."""

    name: str
    stateless: bool = False
    """Each request describes itself, in headers and ``_meta``; there is no ``initialize``. Results name their type and
    their server, errors have HTTP statuses, and closing the connection cancels the request.
    """
    batches: bool = False
    """A POST may contain an array of messages."""
    links: bool = True
    """A tool's content may include links to resources."""
    audio: bool = True
    """A tool's content may include audio."""
    tasks: Literal["requested", "offered"] | None = None
    """How a call becomes a task: ``requested``, by its ``task`` parameter (experimental in that revision), or
    ``offered`` by the server to clients that declare the extension.
    """


_ALL: Final = (
    McpRevision("2026-07-28", stateless=True, tasks="offered"),
    McpRevision("2025-11-25", tasks="requested"),
    McpRevision("2025-06-18"),
    McpRevision("2025-03-26", batches=True, links=False),
    McpRevision("2024-11-05", links=False, audio=False),
)

REVISIONS: Final[Mapping[str, McpRevision]] = MappingProxyType({revision.name: revision for revision in _ALL})
"""The revisions by name, newest first."""
STATELESS: Final = tuple(revision.name for revision in _ALL if revision.stateless)
"""The revisions that ``server/discover`` lists; the others start with ``initialize``."""
DEFAULT_REVISION: Final = REVISIONS["2025-03-26"]
"""The revision of a request without the version header, which this revision does not have."""


SSE_REVISION: Final = REVISIONS["2024-11-05"]
"""The revision of HTTP with SSE, until ``initialize`` selects another one."""


def negotiated(requested: object) -> McpRevision:
    """Returns the revision in the answer to ``initialize``: the requested revision, or the newest that has
    ``initialize``.
    """
    revision = REVISIONS.get(requested) if isinstance(requested, str) else None
    if revision is None or revision.stateless:
        return next(revision for revision in _ALL if not revision.stateless)
    return revision
