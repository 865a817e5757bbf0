"""The revisions of MCP that are spoken, and all that differs between them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class McpRevision:
    """One dated revision of the specification."""

    name: str
    stateless: bool = False
    """Each request says all about itself, in headers and ``_meta``; there is no ``initialize``. Results name their
    type and their server, errors have HTTP statuses, and a client that goes away has cancelled.
    """
    batches: bool = False
    """A POST may hold an array of messages."""
    links: bool = True
    """A tool's content may be a link to a resource."""
    tasks: Literal["asked", "offered"] | None = None
    """Whether a call may become a task: ``asked`` for by its ``task`` parameter (experimental then), or ``offered`` by
    the server to clients that declare the extension.
    """


_ALL: Final = (
    McpRevision("2026-07-28", stateless=True, tasks="offered"),
    McpRevision("2025-11-25", tasks="asked"),
    McpRevision("2025-06-18"),
    McpRevision("2025-03-26", batches=True, links=False),
)

REVISIONS: Final[Mapping[str, McpRevision]] = MappingProxyType({revision.name: revision for revision in _ALL})
"""By name, the newest first."""
STATELESS: Final = tuple(revision.name for revision in _ALL if revision.stateless)
"""Those that ``server/discover`` names: others begin with ``initialize``."""
DEFAULT_REVISION: Final = REVISIONS["2025-03-26"]
"""What a request without the version's header is, by the specification: that revision had no such header."""


def negotiated(wished: object) -> McpRevision:
    """What ``initialize`` answers: the revision that was asked for, or the newest that knows ``initialize``."""
    revision = REVISIONS.get(wished) if isinstance(wished, str) else None
    if revision is None or revision.stateless:
        return next(revision for revision in _ALL if not revision.stateless)
    return revision
