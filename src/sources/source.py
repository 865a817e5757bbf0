"""What a source is: something outside that tools come from, and that may be late, away, or different tomorrow."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ..tools import Tool
from .source_notes import SourceNote


@dataclass(frozen=True, slots=True)
class SourceCheck:
    """What a source comes to, for `toold sources check`."""

    title: str = ""
    """What it calls itself."""
    tools: tuple[str, ...] = ()
    """Their names."""
    notes: tuple[SourceNote, ...] = ()
    problem: str | None = None
    """Why nothing can be made of it."""


class SourceOutlet(Protocol):
    """Where a source puts what it has."""

    def put(self, tools: Sequence[Tool], notes: Sequence[SourceNote]) -> None:
        """These are its tools from now on, in place of those before; what was wrong before is right again."""
        ...

    def recall(self, tools: Sequence[Tool]) -> None:
        """These are the tools that it had before the daemon started; nothing is known of them yet."""
        ...

    def complain(self, problem: str) -> None:
        """Something is wrong, in a sentence for the operator; the tools from before stay."""
        ...


class Source(Protocol):
    """One source at work."""

    async def run(self, outlet: SourceOutlet) -> None:
        """Find the tools, put them out, and again when they change; until it is cancelled. Never raises for what the
        other side does.
        """
        ...

    def refresh(self) -> None:
        """Look again now: the operator asked for it."""
        ...

    async def close(self) -> None:
        """Give up connections. Calls that run have them until they end."""
        ...


@runtime_checkable
class Quarantine(Protocol):
    """A source that holds tools back until the operator has looked at them."""

    @property
    def quarantined(self) -> Sequence[str]:
        """The names of those that it holds back."""
        ...

    def approve(self, tool: str | None) -> Sequence[str]:
        """Accept this tool, or all that are held back, as they are now; returns their names.

        Raises:
            PinError: that cannot be kept.
        """
        ...
