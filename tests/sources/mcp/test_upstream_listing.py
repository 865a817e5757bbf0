"""Listings: valid tools, and the limits."""

from typing import Any

import pytest
from mcp_types import ListToolsResult
from toold.sources.mcp import upstream_listing
from toold.sources.mcp.upstream_listing import ListingCollector, remove_invalid_tools


def tool(name: Any = "t", **parts: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **parts}


def page(*tools: dict[str, Any], cursor: str | None = None) -> ListToolsResult:
    return ListToolsResult.model_validate({"tools": tools, "nextCursor": cursor}, by_name=False)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("text", "a tool without a name: it is not a valid MCP tool: it: Input should be a valid dictionary"),
        (tool(5), "a tool without a name: it is not a valid MCP tool: name: Input should be a valid string"),
        (tool(""), "a tool without a name: it has no name"),
        ({"name": "bad"}, "bad: it is not a valid MCP tool: inputSchema: Field required"),
        (tool("\x1b[2Jbad", description=5), "[2Jbad: it is not a valid MCP tool: description: Input should be"),
        (tool("bad", inputSchema={"type": "array"}), 'bad: inputSchema must have "type": "object"'),
    ],
    ids=["text", "number", "empty", "no schema", "description", "array"],
)
def test_an_invalid_tool_does_not_affect_others(bad: Any, message: str) -> None:
    """It is omitted, with the reason."""
    result = {"tools": [tool("one"), bad, tool("two")]}
    (note,) = remove_invalid_tools(result)
    assert [tool["name"] for tool in result["tools"]] == ["one", "two"]
    assert note.kind == "omitted"
    assert str(note).startswith(message)


@pytest.mark.parametrize("schema", [{}, {"type": "array"}, {"anyOf": [{"type": "object"}, {"type": "null"}]}])
def test_an_output_schema_of_another_type_is_removed(schema: dict[str, Any]) -> None:
    """Older revisions reject it; the tool stays."""
    result = {"tools": [tool("list", outputSchema=schema), tool("one", outputSchema={"type": "object"})]}
    (note,) = remove_invalid_tools(result)
    assert result["tools"] == [tool("list"), tool("one", outputSchema={"type": "object"})]
    assert (note.kind, note.where) == ("repaired", "list")


def collect(*pages: ListToolsResult) -> tuple[list[str], list[str], int]:
    """Returns the names, the notes and the number of requested pages."""
    collector, request_count = ListingCollector(), 0
    for page in pages:
        request_count += 1
        if collector.add_page(page) is None:
            break
    result = collector.listing([])
    return [tool.name for tool in result.tools], [str(note) for note in result.notes], request_count


def test_a_repeated_cursor_ends_the_listing() -> None:
    """When the cursor appears for the second time."""
    names, notes, request_count = collect(*(page(tool(str(number)), cursor="x") for number in range(5)))
    assert (names, request_count) == (["0", "1"], 2)
    assert notes == ["the listing: everything after a page whose cursor repeats"]


def test_the_number_of_pages_is_limited() -> None:
    """To 200."""
    names, notes, request_count = collect(*(page(tool(str(number)), cursor=str(number)) for number in range(300)))
    assert (len(names), request_count) == (200, 200)
    assert notes == ["the listing: everything after 200 pages"]


def test_the_number_of_tools_is_limited() -> None:
    """At most 2,000 are kept; a note says that there were more."""
    tools = [tool(str(number)) for number in range(2001)]
    assert [len(part) if isinstance(part, list) else part for part in collect(page(*tools[:2000]))] == [2000, 0, 1]
    names, notes, _ = collect(page(*tools))
    assert len(names) == 2000
    assert notes == ["the listing: everything after 2,000 tools"]


def test_the_size_of_definitions_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each tool, and of all together."""
    names, notes, _ = collect(page(tool("one"), tool("large", description="x" * 300_000)))
    assert names == ["one"]
    assert notes == ["large: its definition has 300,095 bytes, more than 256 KiB"]
    monkeypatch.setattr(upstream_listing, "MAX_LISTING_BYTES", 1024 * 1024)
    names, notes, _ = collect(page(*(tool(str(number), description="x" * 200_000) for number in range(20))))
    assert len(names) == 6
    assert notes == ["the listing: everything after 1 MiB"]


def test_duplicate_names_are_omitted() -> None:
    """The first tool keeps the name."""
    names, notes, _ = collect(page(tool("one", description="first"), tool("one", description="second")))
    assert names == ["one"]
    assert notes == ["one: another tool of the server has this name"]
