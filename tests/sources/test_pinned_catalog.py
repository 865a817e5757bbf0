"""The pins of a source follow its listings, also when their file cannot be written for a while."""

from pathlib import Path

import pytest
from toold.sources.pinned_catalog import PinnedCatalog
from toold.sources.tool_pins import PinError, PinFile
from toold.sources.upstream_definition import UpstreamDefinition, UpstreamListing


def listing(description: str) -> UpstreamListing:
    return UpstreamListing([UpstreamDefinition("a", description)])


def pinned(directory: Path) -> str | None:
    pins = PinFile(directory, "s").read()
    return None if pins is None else pins["a"].definition.description


async def test_pins_that_could_not_be_written_are_written_later(tmp_path: Path) -> None:
    """Else the first listing after a restart would be pinned as it is then; so with the first pins and with changes."""
    directory, aside = tmp_path / "pins", tmp_path / "aside"
    catalog = PinnedCatalog("s", directory, lambda: ())

    async def accept(description: str) -> None:
        await catalog.update(listing(description))
        catalog.accept_changes()
        await catalog.save()

    directory.write_text("not a directory")
    with pytest.raises(PinError):
        await accept("first")
    directory.unlink()
    await accept("first")
    assert pinned(directory) == "first"

    directory.rename(aside)
    directory.write_text("not a directory")
    with pytest.raises(PinError):
        await accept("changed")
    directory.unlink()
    aside.rename(directory)
    await accept("changed")
    assert pinned(directory) == "changed"
    assert catalog.latest.quarantined == ()
