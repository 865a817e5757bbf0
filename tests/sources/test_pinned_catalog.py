"""The pins of a source follow its listings and the other nodes, also when they cannot be written for a while."""

import asyncio
from pathlib import Path

import pytest
from tests.daemon.cluster.memory_pins import MemoryPins, NodePins
from toold.sources.pin_storage import PinFiles, SharedPins
from toold.sources.pinned_catalog import PinnedCatalog
from toold.sources.tool_pins import PinConflictError, PinError
from toold.sources.upstream_definition import UpstreamDefinition, UpstreamListing


def listing(description: str) -> UpstreamListing:
    return UpstreamListing([UpstreamDefinition("a", description)])


def pinned(directory: Path) -> str | None:
    pins = PinFiles(directory).read_now("s")
    return None if pins is None else pins["a"].definition.description


async def test_pins_that_could_not_be_written_are_written_later(tmp_path: Path) -> None:
    """Else the first listing after a restart would be pinned as it is then; so with the first pins and with changes."""
    directory, aside = tmp_path / "pins", tmp_path / "aside"
    catalog = PinnedCatalog("s", PinFiles(directory), lambda: ())

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


def two_catalogs() -> tuple[MemoryPins, PinnedCatalog, PinnedCatalog]:
    """The catalogs of one source at two nodes."""
    shared = MemoryPins()
    first, second = (PinnedCatalog("s", SharedPins(NodePins(shared)), lambda: ()) for _ in range(2))
    return shared, first, second


async def test_the_first_listing_of_all_nodes_is_pinned() -> None:
    """A node that read another listing at the same time quarantines it."""
    _, first, second = two_catalogs()
    await first.update(listing("first"))
    await second.update(listing("second"))
    assert not await first.save()
    assert await second.save()
    assert (first.latest.quarantined, second.latest.quarantined) == ((), ("a",))


async def test_an_approval_holds_at_the_other_nodes() -> None:
    """Once they reload the pins; nothing is read if they have them."""
    shared, first, second = two_catalogs()
    for catalog in (first, second):
        await catalog.update(listing("first"))
        await catalog.save()
        await catalog.update(listing("changed"))
        assert catalog.latest.quarantined == ("a",)
    await first.approve(first.latest.in_quarantine)
    assert (first.latest.quarantined, second.latest.quarantined) == ((), ("a",))
    assert await second.reload(shared.revisions)
    assert second.latest.quarantined == ()
    assert not await second.reload(shared.revisions)
    assert not await first.reload(shared.revisions)


async def test_two_operators_cannot_approve_different_versions() -> None:
    """Of those who saw the same approved version, the first one decides; the other one sees what waits now."""
    _, first, second = two_catalogs()
    for catalog, description in ((first, "second"), (second, "third")):
        await catalog.update(listing("first"))
        await catalog.save()
        await catalog.update(listing(description))
    await first.approve(first.latest.in_quarantine)
    with pytest.raises(PinConflictError):
        await second.approve(second.latest.in_quarantine)
    (comparison,) = second.latest.in_quarantine
    assert comparison.pinned is not None
    assert comparison.pinned.description == "second"
    await second.approve(second.latest.in_quarantine)
    assert second.latest.quarantined == ()


async def test_approvals_of_different_tools_do_not_conflict() -> None:
    """Both are pinned, although each node knew nothing of the other's."""
    shared, first, second = two_catalogs()

    def both(description: str) -> UpstreamListing:
        return UpstreamListing([UpstreamDefinition(name, description) for name in ("a", "b")])

    for catalog in (first, second):
        await catalog.update(both("first"))
        await catalog.save()
        await catalog.update(both("changed"))
    await first.approve(first.latest.select_quarantined("a", ""))
    await second.approve(second.latest.select_quarantined("b", ""))
    assert second.latest.quarantined == ()
    assert await first.reload(shared.revisions)
    assert first.latest.quarantined == ()


async def test_accepted_changes_are_pinned_over_those_of_another_node() -> None:
    """A source that accepts changes has what it reads, whatever the other nodes read."""
    shared, first, second = two_catalogs()
    for catalog, description in ((first, "second"), (second, "third")):
        await catalog.update(listing("first"))
        await catalog.save()
        await catalog.update(listing(description))
        catalog.accept_changes()
    assert not await first.save()
    assert await second.save()
    assert second.latest.quarantined == ()
    assert b'"third"' in shared.stored["s"].content


async def test_pins_that_are_approved_during_a_listing_count() -> None:
    """The comparison of a listing takes a moment, in which the pins may change."""
    shared, first, second = two_catalogs()
    for catalog in (first, second):
        await catalog.update(listing("first"))
        await catalog.save()
    await first.update(listing("changed"))
    await first.approve(first.latest.in_quarantine)
    reading = asyncio.create_task(second.update(listing("changed")))
    await asyncio.sleep(0)  # it begins
    assert await second.reload(shared.revisions)
    await reading
    assert second.latest.quarantined == ()


async def test_nested_definitions_do_not_make_the_file_large(tmp_path: Path) -> None:
    """A server must not make a file that takes memory or cannot be read again."""
    nested: object = [1] * 10_000
    for _ in range(100):
        nested = [nested]
    definitions = [
        UpstreamDefinition("a", input_schema={"type": "object", "examples": nested}),
        UpstreamDefinition("b"),
    ]
    files = PinFiles(tmp_path)
    catalog = PinnedCatalog("s", files, lambda: ())
    await catalog.update(UpstreamListing(definitions))
    await catalog.save()
    assert (tmp_path / "s.json").stat().st_size < 25_000
    assert [pin.definition for pin in (files.read_now("s") or {}).values()] == definitions
