"""The tools that a server or remote agent lists, compared with their pins (decision 45).

A source updates the catalog with each listing, publishes the tools, and then saves the pins. Other nodes may also
change the pins. A change is stored only if it is based on the stored pins; otherwise it is computed again from them.
"""

from collections.abc import Callable, Container, Mapping, Sequence

from ..protocol.error_codes import PermissionDeniedError
from ..tools import in_tool_thread
from .pin_storage import PinStorage
from .tool_naming import ToolNaming
from .tool_pins import PinComparison, Pins, approved_pins, merged_approval
from .upstream_catalog import UpstreamCatalog, build_catalog, prepare, withheld_reason
from .upstream_definition import UpstreamListing


class PinnedCatalog:
    """The latest catalog of one source, and its pins."""

    def __init__(
        self,
        source: str,
        storage: PinStorage,
        taken: Callable[[], Container[str]],
        naming: ToolNaming | None = None,
        *,
        kept_as: str | None = None,
    ) -> None:
        """``kept_as`` is the name of the pins in ``storage``, by default the source's name. ``taken`` returns the tool
        names that other sources use.
        """
        self._source = source
        self._storage = storage
        self._kept_as = kept_as or source
        self._taken = taken
        self._naming = naming or ToolNaming()
        self._pins: Pins | None = None
        self._revision: int | None = None
        # Changed tools whose current versions are accepted but not yet pinned.
        self._accepted: Sequence[PinComparison] = ()
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
        """Checks the server's tool of this name before it is called.

        Raises:
            PermissionDeniedError: the tool is quarantined.
        """
        for comparison in self.latest.in_quarantine:
            if comparison.definition.name == tool:
                raise PermissionDeniedError.content_free(str(withheld_reason(self._source, comparison)))

    def runs_as_task(self, tool: str) -> bool:
        """Whether the server runs its tool of this name only as a task."""
        tools = () if self.listing is None else self.listing.tools
        return any(definition.as_task for definition in tools if definition.name == tool)

    async def restore(self) -> bool:
        """Builds the catalog of the pinned tools. Returns False if there are none.

        Raises:
            PinError: the pins cannot be read.
        """
        kept = await self._storage.read(self._kept_as)
        if kept is None or not kept.pins:
            return False
        self._take(kept.pins, kept.revision)
        await self.update(UpstreamListing([pin.definition for pin in kept.pins.values()]))
        return True

    async def reload(self, revisions: Mapping[str, int]) -> bool:
        """Compares the listing with the pins if other nodes have changed them; returns whether they have. ``revisions``
        are those of the stored pins, by name.

        Raises:
            PinError: the pins cannot be read.
        """
        stored, known = revisions.get(self._kept_as), self._revision
        if stored is None or (stored <= known if known is not None else self.listing is None):
            return False  # unchanged, or not restored yet
        kept = await self._storage.read(self._kept_as)
        if kept is None or not self._take(kept.pins, kept.revision):
            return False
        self._compare_again()
        return True

    async def update(self, listing: UpstreamListing) -> None:
        """Builds the catalog of a listing. Publish it without an await in between; otherwise another source could take
        the names.
        """
        selected, pins = self._naming.selected(listing), self._pins
        prepared = await in_tool_thread(prepare, selected, pins)
        self.latest = build_catalog(self._source, selected, pins, self._taken(), prepared, self._naming)
        self.listing = listing
        self._accepted = ()
        if self._pins is not pins:  # approved meanwhile
            self._compare_again()

    def accept_changes(self) -> Sequence[PinComparison]:
        """Releases all quarantined tools from quarantine, and returns them. ``save`` pins them."""
        changed = self.latest.in_quarantine
        if changed:
            self._accepted = changed
            self.latest = self.latest.compared_with(approved_pins(self._pins, changed), self._taken())
        return changed

    async def save(self) -> bool:
        """Pins the tools of the first listing, or accepted changes. After an error, a later listing tries again.

        Returns whether another node has changed the pins meanwhile, so that the catalog must be published again.

        Raises:
            PinError: the pins cannot be written.
        """
        accepted, first = self._accepted, self.latest.comparisons
        if accepted:
            merged = await self._change(lambda pins: approved_pins(pins, accepted))
        elif not self._pins and first:
            merged = await self._change(lambda pins: pins or approved_pins(None, first))
        else:
            return False
        self._accepted = ()
        if merged:
            self._compare_again()
        return merged

    async def approve(self, selected: Sequence[PinComparison]) -> None:
        """Pins these tools in their versions in the catalog, unless another version was approved meanwhile.

        Raises:
            PinConflictError: another version was approved; the catalog is now compared with it.
            PinError: the pins cannot be written.
        """
        seen = self._pins
        try:
            await self._change(lambda pins: merged_approval(pins, seen, selected))
        finally:
            self._compare_again()

    async def _change(self, change: Callable[[Pins | None], Pins]) -> bool:
        """Stores the changed pins. Returns whether the stored pins differed from those in memory."""
        pins, revision, merged = self._pins, self._revision, False
        while True:
            changed = change(pins)
            if merged and changed == pins:
                return True
            written = await self._storage.replace(self._kept_as, changed, revision)
            if written is not None:
                self._take(changed, written)
                return merged
            merged = True
            kept = await self._storage.read(self._kept_as)
            if kept is None:  # deleted: the pins in memory apply until a restart
                pins, revision = self._pins, None
            else:
                pins, revision = kept
                self._take(pins, revision)

    def _take(self, pins: Pins, revision: int) -> bool:
        """Takes pins into memory unless they are older than the current ones. Returns whether it did."""
        if self._revision is not None and revision <= self._revision:
            return False
        self._pins, self._revision = pins, revision
        return True

    def _compare_again(self) -> None:
        self._accepted = ()
        self.latest = self.latest.compared_with(self._pins, self._taken())
