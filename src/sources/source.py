"""The interface of a source: an external system that provides tools, and that may be slow, unavailable or changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, runtime_checkable

from ..protocol.terminal_text import one_line
from ..tools import Tool

_PLACE_CHARS: Final = 200
_MESSAGE_CHARS: Final = 400


@dataclass(frozen=True, slots=True)
class SourceNote:
    """One problem in an API document or an upstream tool, and how it was handled; for `toold sources check`."""

    kind: Literal["repaired", "omitted", "quarantined"]
    where: str
    """The operation, such as ``GET /contacts/{id}``, or another place in the document."""
    what: str
    diff: str = ""
    """The changes of a quarantined tool, as lines with ``-`` and ``+``. For a new tool, all lines have ``+``."""
    version: str = ""
    """The beginning of the hash of a quarantined tool's definition; the operator approves it by this hash."""

    def __post_init__(self) -> None:
        """Makes both texts terminal-safe, because they quote the document or the server."""
        object.__setattr__(self, "where", one_line(self.where, _PLACE_CHARS))
        object.__setattr__(self, "what", one_line(self.what, _MESSAGE_CHARS))

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class SourceNotes:
    """Collects the notes about one place, without duplicates."""

    def __init__(self, where: str) -> None:
        self.where = where
        self._notes: dict[SourceNote, None] = {}

    def repaired(self, what: str) -> None:
        """Notes a defect that was worked around."""
        self._notes[SourceNote("repaired", self.where, what)] = None

    def omitted(self, what: str) -> None:
        """Notes an unusable part that was omitted."""
        self._notes[SourceNote("omitted", self.where, what)] = None

    def collected(self) -> tuple[SourceNote, ...]:
        """Returns the notes so far."""
        return tuple(self._notes)


@dataclass(frozen=True, slots=True)
class RefusedServer:
    """A server of an API to which no request may be sent."""

    host: str
    reason: str
    """A clause, such as ``is loopback``."""

    @property
    def may_be_allowed(self) -> bool:
        """Whether ``allow_private`` could allow the address. It cannot allow link-local and metadata addresses."""
        return self.reason in {"is loopback", "is private"}


@dataclass(frozen=True, slots=True)
class SourceCheck:
    """The outcome of `toold sources check` for one source."""

    title: str = ""
    """The title that the source gives itself."""
    tools: tuple[str, ...] = ()
    """The names of the source's tools."""
    notes: tuple[SourceNote, ...] = ()
    problem: str | None = None
    """Why the source cannot be used."""
    excluded: int = 0
    """Operations that ``include`` and ``exclude`` do not select."""
    missing_secrets: tuple[str, ...] = ()
    """The secrets that this process, whose environment is not the daemon's, cannot read."""
    refused_servers: tuple[RefusedServer, ...] = ()
    """The servers of a REST API whose addresses the source may not reach: calls to them are refused."""


class SourceListener(Protocol):
    """Receives a source's tools and problems."""

    def publish(self, tools: Sequence[Tool], notes: Sequence[SourceNote]) -> None:
        """Replaces the source's tools and clears its problem."""
        ...

    def restore(self, tools: Sequence[Tool]) -> None:
        """Lists the tools that were pinned before the daemon started. They apply until the source has answered."""
        ...

    def report_problem(self, problem: str) -> None:
        """Reports a problem, as one sentence for the operator. The tools stay."""
        ...


class Source(Protocol):
    """A running source."""

    async def run(self, listener: SourceListener) -> None:
        """Publishes the tools whenever they change, until it is cancelled.

        Does not raise for failures of the API or the server.
        """
        ...

    def refresh(self) -> None:
        """Reads the tools again now, at the operator's request."""
        ...

    async def close(self) -> None:
        """Closes the connections. Running calls keep theirs until they end."""
        ...


QuarantinedKind = Literal["tool", "prompt", "instructions"]


@dataclass(frozen=True, slots=True)
class QuarantinedVersion:
    """A version of a tool or prompt, or of a server's instructions, that waits for the operator's approval."""

    kind: QuarantinedKind
    name: str
    """The server's name for the tool or prompt."""
    reason: str
    diff: str
    """The lines that differ from the approved version, with ``-`` and ``+``; for a new tool, all lines."""
    digest: str
    """The hash of the version (``UpstreamDefinition.digest``)."""
    approved: str
    """The hash of the approved version; empty for a new tool or prompt."""


@runtime_checkable
class Quarantine(Protocol):
    """A source that quarantines changed tools until the operator approves them."""

    @property
    def quarantined(self) -> Sequence[str]:
        """The names of the quarantined tools."""
        ...

    @property
    def waiting(self) -> Sequence[QuarantinedVersion]:
        """The versions that wait for approval."""
        ...

    async def approve(self, tool: str, digest: str) -> Sequence[str]:
        """Pins the quarantined tool of this name, if its version's hash begins with ``digest``. Returns the names of
        the pinned tools.

        Raises:
            PinConflictError: another version was approved meanwhile, at another node.
            PinError: the pins cannot be written.
        """
        ...

    async def reload_pins(self, revisions: Mapping[str, int]) -> None:
        """Compares everything with the pins if other nodes have changed them. ``revisions`` are those of the stored
        pins, by name.

        Raises:
            PinError: the pins cannot be read.
        """
        ...


@runtime_checkable
class InstructsModels(Protocol):
    """A source that tells models how to use its tools."""

    @property
    def instructions(self) -> str:
        """The approved text, as lines of printable characters; empty if there is none."""
        ...


@runtime_checkable
class LooksAgain(Protocol):
    """A source whose tools may change without notification."""

    def look_again(self) -> None:
        """Called when a client lists tools: reads the source's tools again soon, in the background."""
        ...


def secret_rejected(source: str) -> str:
    """Returns the advice for a 401 answer, for the caller."""
    return f"It rejects the daemon's secret; ask the operator to correct auth in [sources.{source}]."
