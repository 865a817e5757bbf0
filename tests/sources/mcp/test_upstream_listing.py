"""Listings: what of a page is a tool, and how much is taken."""

from typing import Any

import pytest
from mcp_types import ListToolsResult
from toold.sources.mcp import upstream_listing
from toold.sources.mcp.upstream_listing import ListingCollector, sift


def tool(name: Any = "t", **parts: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **parts}


def page(*tools: dict[str, Any], cursor: str | None = None) -> ListToolsResult:
    return ListToolsResult.model_validate({"tools": tools, "nextCursor": cursor}, by_name=False)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ("text", "a tool without a name: it is no tool as MCP has it: it: Input should be a valid dictionary"),
        (tool(5), "a tool without a name: it is no tool as MCP has it: name: Input should be a valid string"),
        (tool(""), "a tool without a name: it has no name"),
        ({"name": "bad"}, "bad: it is no tool as MCP has it: inputSchema: Field required"),
        (tool("\x1b[2Jbad", description=5), "[2Jbad: it is no tool as MCP has it: description: Input should be"),
        (tool("bad", inputSchema={"type": "array"}), 'bad: inputSchema must have "type": "object"'),
    ],
    ids=["text", "number", "empty", "no schema", "description", "array"],
)
def test_what_is_no_tool_harms_no_other(bad: Any, told: str) -> None:
    """It is left out, with the reason."""
    result = {"tools": [tool("one"), bad, tool("two")]}
    (note,) = sift(result)
    assert [one["name"] for one in result["tools"]] == ["one", "two"]
    assert note.kind == "omitted"
    assert str(note).startswith(told)


@pytest.mark.parametrize("schema", [{}, {"type": "array"}, {"anyOf": [{"type": "object"}, {"type": "null"}]}])
def test_what_returns_no_object_is_a_tool(schema: dict[str, Any]) -> None:
    """Without the schema, which older revisions do not take."""
    result = {"tools": [tool("list", outputSchema=schema), tool("one", outputSchema={"type": "object"})]}
    (note,) = sift(result)
    assert result["tools"] == [tool("list"), tool("one", outputSchema={"type": "object"})]
    assert (note.kind, note.where) == ("repaired", "list")


def taken(*pages: ListToolsResult) -> tuple[list[str], list[str], int]:
    """Names, notes, and how many pages were asked for."""
    gathering, asked = ListingCollector(), 0
    for one in pages:
        asked += 1
        if gathering.take(one) is None:
            break
    found = gathering.listing([])
    return [one.name for one in found.tools], [str(note) for note in found.notes], asked


def test_pages_that_lead_back_end() -> None:
    """At the second sight of a cursor."""
    names, notes, asked = taken(*(page(tool(str(number)), cursor="x") for number in range(5)))
    assert (names, asked) == (["0", "1"], 2)
    assert notes == ["the listing: what comes after a page that leads back to another"]


def test_pages_without_end_end() -> None:
    """After 200."""
    names, notes, asked = taken(*(page(tool(str(number)), cursor=str(number)) for number in range(300)))
    assert (len(names), asked) == (200, 200)
    assert notes == ["the listing: what it may have after 200 pages"]


def test_so_many_tools_are_taken() -> None:
    """2,000, and it is said where there were more."""
    tools = [tool(str(number)) for number in range(2001)]
    assert [len(part) if isinstance(part, list) else part for part in taken(page(*tools[:2000]))] == [2000, 0, 1]
    names, notes, _ = taken(page(*tools))
    assert len(names) == 2000
    assert notes == ["the listing: what it may have after 2,000 tools"]


def test_so_much_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one tool, and of all."""
    names, notes, _ = taken(page(tool("one"), tool("large", description="x" * 300_000)))
    assert names == ["one"]
    assert notes == ["large: its definition has 300,066 bytes, more than 256 KiB"]
    monkeypatch.setattr(upstream_listing, "MAX_LISTING_BYTES", 1024 * 1024)
    names, notes, _ = taken(page(*(tool(str(number), description="x" * 200_000) for number in range(20))))
    assert len(names) == 6
    assert notes == ["the listing: what it may have after 1 MiB"]


def test_a_name_is_given_once() -> None:
    """The first tool has it."""
    names, notes, _ = taken(page(tool("one", description="first"), tool("one", description="second")))
    assert names == ["one"]
    assert notes == ["one: another tool of the server has the name"]
