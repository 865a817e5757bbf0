"""Which tools of a server a source has, and their names."""

from collections.abc import Mapping
from typing import Any

import pytest
from toold.sources import read_sources
from toold.sources.source_settings_reader import SourceSettingsError
from toold.sources.tool_naming import ToolNaming
from toold.sources.tool_pins import approved_pins
from toold.sources.upstream_catalog import build_catalog, prepare
from toold.sources.upstream_definition import UpstreamDefinition, UpstreamListing

LISTING = UpstreamListing([UpstreamDefinition(name) for name in ("read", "write", "odd/name")])


def names(naming: ToolNaming, taken: tuple[str, ...] = (), pins: Any = None) -> tuple[Mapping[str, str], list[str]]:
    """The served names by the server's, and the names in the notes."""
    selected = naming.selected(LISTING)
    catalog = build_catalog("s", selected, pins, taken, prepare(selected, pins), naming)
    served = {item.definition.name: item.served for item in catalog.comparisons}
    return served, [note.where for note in catalog.notes if note.kind == "omitted" and "schema" not in note.what]


@pytest.mark.parametrize(
    ("naming", "taken", "served", "omitted"),
    [
        (ToolNaming(), ("read",), {"read": "s_read", "write": "write", "odd/name": "s_odd_name"}, []),
        (ToolNaming("always"), (), {"read": "s_read", "write": "s_write", "odd/name": "s_odd_name"}, []),
        (ToolNaming("never"), ("read",), {"write": "write"}, ["read", "odd/name"]),
        (ToolNaming("never", {"odd/name": "odd"}, exclude=["r*"]), (), {"write": "write", "odd/name": "odd"}, []),
        (ToolNaming("always", {"read": "get"}, include=["read"]), (), {"read": "get"}, []),
        (ToolNaming(rename={"read": "get"}, include=["read"]), ("get",), {"read": "s_get"}, []),
        (ToolNaming(rename={"raed": "get"}, include=["w*"]), (), {"write": "write"}, ["rename.raed"]),
    ],
    ids=["on collision", "always", "never", "renamed", "renamed, not prefixed", "a taken new name", "unknown"],
)
def test_tools_are_chosen_and_named(
    naming: ToolNaming, taken: tuple[str, ...], served: dict[str, str], omitted: list[str]
) -> None:
    """By the globs, new names and prefix; what gets no name is reported."""
    assert names(naming, taken) == (served, omitted)


def test_the_settings_precede_pinned_names() -> None:
    """A pinned name stays only while no rule gives another."""
    catalog = build_catalog("s", LISTING, None, (), prepare(LISTING, None))
    pins = approved_pins(None, catalog.comparisons)
    assert names(ToolNaming(), (), pins)[0]["read"] == "read"
    assert names(ToolNaming("always"), (), pins)[0]["read"] == "s_read"
    assert names(ToolNaming(rename={"read": "get"}), (), pins)[0]["read"] == "get"


@pytest.mark.parametrize("renames", [{"a": "x y"}, {"a": "same", "b": "same"}])
def test_new_names_must_be_valid_and_different(renames: dict[str, str]) -> None:
    """The error names the key and what is allowed."""
    with pytest.raises(SourceSettingsError, match="rename must give each tool another name"):
        read_sources({"s": {"type": "mcp", "command": ["x"], "rename": renames}})
