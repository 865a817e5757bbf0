"""Pins of sources: in files next to the embedded database, and in the database that nodes share."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from toold.sources.pin_storage import PinFiles, PinStorage, SharedPins, encode_pins
from toold.sources.tool_pins import PinError, Pins, ToolPin
from toold.sources.upstream_definition import UpstreamDefinition
from toold.store import Store

OpenStore = Callable[..., Store]


def pins_of(store: Store, directory: Path) -> PinStorage:
    return PinFiles(directory / "pins") if store.cluster is None else SharedPins(store.cluster.pins)


def pinned(description: str) -> Pins:
    definition = UpstreamDefinition("a", description, {"type": "object"}, None, {"readOnlyHint": True})
    return {"a": ToolPin("s_a", definition, titled=True)}


async def test_pins_are_read_as_they_were_written(open_again: OpenStore, tmp_path: Path) -> None:
    """Also by the next process. Before the first listing there are none; each set has a name."""
    store = open_again()
    pins = pins_of(store, tmp_path)
    assert await pins.read("s") is None
    assert await pins.replace("s", pinned("first"), None) is not None
    assert await pins.replace("s.prompts", pinned("a prompt"), None) is not None
    await store.close()
    store = open_again()
    kept = await pins_of(store, tmp_path).read("s")
    assert kept is not None
    assert kept.pins == pinned("first")
    await store.close()


async def test_pins_are_replaced_only_as_they_were_read(store: Store, tmp_path: Path) -> None:
    """A change that came in between is not lost, whether there were pins before or not."""
    pins = pins_of(store, tmp_path)
    first = await pins.replace("s", pinned("first"), None)
    assert first is not None
    assert await pins.replace("s", pinned("another first one"), None) is None
    second = await pins.replace("s", pinned("second"), first)
    assert second is not None
    assert second > first
    assert await pins.replace("s", pinned("another second one"), first) is None
    kept = await pins.read("s")
    assert kept == (pinned("second"), second)


async def test_one_of_several_changes_at_the_same_time_is_stored(store: Store, tmp_path: Path) -> None:
    """The others learn that theirs is not."""
    pins = pins_of(store, tmp_path)
    texts = [str(number) for number in range(8)]
    revisions = await asyncio.gather(*[pins.replace("s", pinned(text), None) for text in texts])
    (stored,) = [text for text, revision in zip(texts, revisions, strict=True) if revision is not None]
    kept = await pins.read("s")
    assert kept is not None
    assert kept.pins == pinned(stored)


async def test_damaged_pins_are_an_error(store: Store, tmp_path: Path) -> None:
    """They are not treated as a first listing."""
    pins = pins_of(store, tmp_path)
    if store.cluster is None:
        PinFiles(tmp_path / "pins").write("s", b"{")
    else:
        await store.cluster.pins.replace("s", b"{", None)
    with pytest.raises(PinError, match="is not a pin file"):
        await pins.read("s")
    if store.cluster is None:
        PinFiles(tmp_path / "pins").write("s", encode_pins({}))
        assert await pins.read("s") == ({}, 0)
