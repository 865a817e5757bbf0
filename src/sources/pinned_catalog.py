"""The tools that a server or remote agent lists, compared with their pins (decision 45).

A source updates it with each listing, publishes the tools, and then saves the pins.
"""

import asyncio
from collections.abc import Callable, Container, Sequence
from pathlib import Path

from ..protocol.error_codes import PermissionDeniedError
from ..tools import in_tool_thread
from .tool_naming import ToolNaming
from .tool_pins import PinComparison, PinFile, Pins, approved_pins
from .upstream_catalog import UpstreamCatalog, build_catalog, prepare, withheld_reason
from .upstream_definition import UpstreamListing


class PinnedCatalog:
    """The latest catalog of one source, and its pins."""

    def __init__(
        self,
        source: str,
        pins: Path,
        taken: Callable[[], Container[str]],
        naming: ToolNaming | None = None,
        *,
        pin_file: str | None = None,
    ) -> None:
        """``pins`` is the directory of the pin files, each named as its source unless ``pin_file`` names it; ``taken``
        returns the tool names that other sources use.
        """
        self._source = source
        self._pin_file = PinFile(pins, pin_file or source)
        self._taken = taken
        self._naming = naming or ToolNaming()
        self._pins: Pins | None = None
        # The pins with accepted changes, until they are saved.
        self._accepted: Pins | None = None
        self.latest = UpstreamCatalog(source)
        """The catalog of ``listing``."""
        self.listing: UpstreamListing | None = None

    def __repr__(self) -> str:
        return f"<PinnedCatalog {self._source}>"

    @property
    def restored(self) -> bool:
        """Whether there are pins in memory."""
        return self._pins is not None

    def refuse_withheld(self, tool: str) -> None:
        """Checks the server's tool of this name before a call of it.

        Raises:
            PermissionDeniedError: it is quarantined.
        """
        for comparison in self.latest.in_quarantine:
            if comparison.definition.name == tool:
                raise PermissionDeniedError.content_free(str(withheld_reason(self._source, comparison)))

    def runs_as_task(self, tool: str) -> bool:
        """Whether the server runs its tool of this name only as a task."""
        tools = () if self.listing is None else self.listing.tools
        return any(definition.as_task for definition in tools if definition.name == tool)

    async def restore(self) -> bool:
        """Makes the catalog of the pinned tools. Returns False if there are none.

        Raises:
            PinError: the pins cannot be read.
        """
        pins = await asyncio.to_thread(self._pin_file.read)
        if not pins:
            return False
        self._pins = pins
        await self.update(UpstreamListing([pin.definition for pin in pins.values()]))
        return True

    async def update(self, listing: UpstreamListing) -> None:
        """Makes the catalog of a listing. Publish it without an await: another source could take the names."""
        selected = self._naming.selected(listing)
        prepared = await in_tool_thread(prepare, selected, self._pins)
        self.latest = build_catalog(self._source, selected, self._pins, self._taken(), prepared, self._naming)
        self.listing = listing
        self._accepted = None

    def accept_changes(self) -> Sequence[PinComparison]:
        """Takes all quarantined tools out of quarantine, and returns them; ``save`` pins them."""
        changed = self.latest.in_quarantine
        if changed:
            self._accepted = approved_pins(self._pins, changed)
            self.latest = self.latest.compared_with(self._accepted, self._taken())
        return changed

    async def save(self) -> None:
        """Pins the tools of the first listing, or accepted changes. After an error, a later listing repeats it.

        Raises:
            PinError: the pins cannot be written.
        """
        pins = self._accepted
        if pins is None and not self._pins and self.latest.comparisons:
            pins = approved_pins(None, self.latest.comparisons)
        if pins is not None:
            await asyncio.to_thread(self._pin_file.write, pins)
            self._pins, self._accepted = pins, None

    def approve(self, selected: Sequence[PinComparison]) -> None:
        """Pins these tools of the catalog as they are now.

        Raises:
            PinError: the pins cannot be written.
        """
        pins = approved_pins(self._pins, selected)
        self._pin_file.write(pins)
        self._pins = pins
        self.latest = self.latest.compared_with(pins, self._taken())
