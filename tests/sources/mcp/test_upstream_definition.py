"""A tool as its server defines it."""

from typing import Any

import pytest
from toold.protocol.tool_call import Annotations
from toold.sources.mcp.upstream_definition import UpstreamDefinition, changes, served_name

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        ({}, Annotations(False, True, False, True)),
        ({"readOnlyHint": True}, Annotations(True, False, False, True)),
        ({"readOnlyHint": True, "openWorldHint": False}, Annotations(True, False, False, True)),
        ({"destructiveHint": False, "idempotentHint": True}, Annotations(False, False, True, True)),
        ({"readOnlyHint": "yes"}, Annotations(False, True, False, True)),
    ],
)
def test_hints_are_taken_but_for_one(hints: dict[str, Any], expected: Annotations) -> None:
    """No server keeps its calls out of the journal; what it does not say is as MCP has it."""
    assert UpstreamDefinition("t", hints=hints).annotations == expected


def test_a_digest_goes_by_content() -> None:
    """Not by the order of keys."""
    turned = {"properties": {"a": {"type": "string"}}, "type": "object"}
    assert UpstreamDefinition("t", "d", SCHEMA).digest == UpstreamDefinition("t", "d", turned).digest
    assert UpstreamDefinition("t", "d", SCHEMA).digest != UpstreamDefinition("t", "e", SCHEMA).digest


def test_changes_are_named() -> None:
    """Each part that callers choose by."""
    before = UpstreamDefinition("t", "d", SCHEMA)
    assert changes(before, UpstreamDefinition("t", "e", SCHEMA)) == "description"
    assert changes(before, UpstreamDefinition("t", "e", {})) == "description and arguments"
    assert changes(before, UpstreamDefinition("t", "d", SCHEMA, {"type": "object"}, {"readOnlyHint": True})) == (
        "result and annotations"
    )


@pytest.mark.parametrize(
    ("name", "taken", "expected"),
    [
        ("read", set(), "read"),
        ("read", {"read"}, "files_read"),
        ("read", {"read", "files_read"}, "files_read_2"),
        ("fs/read.text", set(), "files_fs_read_text"),
        ("x" * 70, set(), "files_" + "x" * 49 + "_"),
    ],
)
def test_a_name_is_the_servers_own_where_it_can_be(name: str, taken: set[str], expected: str) -> None:
    """Else the source's stands before it."""
    served = served_name("files", name, taken)
    assert served.startswith(expected)
    assert len(served) <= 64
