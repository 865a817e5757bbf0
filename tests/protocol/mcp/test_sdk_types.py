"""What the SDK's types take."""

from typing import Any

import pytest
from toold.protocol.mcp.mcp_revision import REVISIONS, McpRevision
from toold.protocol.mcp.sdk_types import is_plain, objection, official_types

EVERY = pytest.mark.parametrize("revision", REVISIONS.values(), ids=REVISIONS)


def tool(**schema: Any) -> dict[str, Any]:
    return {"name": "t", "description": "A tool.", "inputSchema": schema}


@EVERY
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {"x": {"enum": [None]}}, "required": ["x"], "$defs": {"a": True}},
        {"type": "object", "additionalProperties": False, "properties": {"x": {}}},
    ],
)
def test_a_plain_tool_is_taken(schema: dict[str, Any], revision: McpRevision) -> None:
    """What is told to be plain without the types is taken by those of each revision."""
    assert is_plain(tool(**schema))
    assert objection(official_types(), tool(**schema), revision) is None


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "string"},
        {"type": "object", "properties": []},
        {"type": "object", "properties": {"x": "nonsense"}},
        {"type": "object", "required": "x"},
        {"type": "object", "required": [1]},
    ],
)
def test_any_other_is_looked_at(schema: dict[str, Any]) -> None:
    """It is not plain, and some revision objects to it, with a reason."""
    assert not is_plain(tool(**schema))
    assert any(objection(official_types(), tool(**schema), revision) for revision in REVISIONS.values())
