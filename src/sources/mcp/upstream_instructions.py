"""The instructions of one server. They are text for models, so they are pinned like tools."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from ...protocol.content_text import head_and_tail
from ...protocol.terminal_text import terminal_safe
from ..pin_storage import PinStorage
from ..pinned_catalog import PinnedCatalog
from ..source import QuarantinedVersion, SourceNote
from ..upstream_definition import UpstreamDefinition, UpstreamListing

INSTRUCTION_PINS: Final = ".instructions"
"""The suffix of the source's name in the name of its pins. Names of sources have no dot."""
INSTRUCTIONS: Final = "instructions"
"""The name by which the operator approves instructions."""
_CHANGED: Final = "has other instructions"
MAX_CHARS: Final = 16_384
"""The maximum length; the rest is cut. Models read far less."""


class UpstreamInstructions:
    """A server's instructions for models at the start of a session. No instructions count as an empty text, so that
    later instructions are a change.
    """

    def __init__(self, source: str, pins: PinStorage) -> None:
        self._source = source
        self._pinned = PinnedCatalog(source, pins, tuple, kept_as=f"{source}{INSTRUCTION_PINS}")

    def __repr__(self) -> str:
        return f"<UpstreamInstructions of {self._source}>"

    @property
    def text(self) -> str:
        """The approved text; empty if there is none, or the text waits for approval."""
        return "".join(
            comparison.definition.description
            for comparison in self._pinned.latest.comparisons
            if comparison.quarantine_reason is None
        )

    @property
    def notes(self) -> Sequence[SourceNote]:
        """The note about quarantined instructions."""
        return [
            SourceNote("quarantined", version.name, version.reason, version.diff, version.digest[:12])
            for version in self.waiting
        ]

    @property
    def waiting(self) -> list[QuarantinedVersion]:
        """The version that waits for approval."""
        return [replace(version, reason=_CHANGED) for version in self._pinned.latest.waiting(INSTRUCTIONS)]

    async def approve(self, name: str, digest: str) -> tuple[str, ...]:
        """Approves a version of the instructions; returns their name.

        Raises:
            PinConflictError: another version was approved meanwhile.
            PinError: the pins cannot be written.
        """
        selected = self._pinned.latest.select_quarantined(name, digest)
        if selected:
            await self._pinned.approve(selected)
        return tuple(comparison.definition.name for comparison in selected)

    async def restore(self) -> None:
        """Uses the approved text until the server has answered.

        Raises:
            PinError: the pins cannot be read.
        """
        if not self._pinned.restored:
            await self._pinned.restore()

    async def update(self, text: str | None) -> None:
        """Compares the server's text with the pinned text. ``save`` pins the first text.

        Raises:
            PinError: the pins cannot be read.
        """
        await self.restore()
        cleaned = head_and_tail(terminal_safe(text or "", keep="\n").strip(), MAX_CHARS)
        await self._pinned.update(UpstreamListing([UpstreamDefinition(INSTRUCTIONS, cleaned)]))

    async def reload(self, revisions: Mapping[str, int]) -> bool:
        """Compares the text with the pins if other nodes have changed them. Returns whether they have.

        Raises:
            PinError: the pins cannot be read.
        """
        return await self._pinned.reload(revisions)

    async def save(self) -> bool:
        """Pins the first text. Returns whether another node has already pinned a different text.

        Raises:
            PinError: the pins cannot be written.
        """
        return await self._pinned.save()
