"""The catalog made from a server's listing."""

from typing import Any

import pytest
from toold.sources.upstream_catalog import UpstreamCatalog, build_catalog, prepare
from toold.sources.upstream_definition import UpstreamDefinition, UpstreamListing


def catalog_of(*tools: UpstreamDefinition) -> UpstreamCatalog:
    listing = UpstreamListing(tools)
    return build_catalog("s", listing, None, (), prepare(listing, None))


async def never_called(*_: Any) -> str:
    raise AssertionError


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "odd"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}},
    ],
)
def test_a_wrong_output_schema_is_not_shown(schema: dict[str, Any]) -> None:
    """Clients would reject every answer of the tool; a note reports it, and the tool stays without the schema."""
    right = {"type": "object", "properties": {"a": {"type": "integer"}}}
    catalog = catalog_of(
        UpstreamDefinition("wrong", output_schema=schema),
        UpstreamDefinition("right", output_schema=right),
        UpstreamDefinition("none"),
    )
    shown = {tool.name: tool.output_schema for tool in catalog.tools(never_called, 30.0, ())}
    assert shown == {"wrong": None, "right": right, "none": None}
    (note,) = catalog.notes
    assert (note.kind, note.where) == ("repaired", "wrong")
    assert note.what.startswith("its outputSchema is not shown: the schema ")
