"""The pages of ``tools/list``."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs
from toold.daemon.transports.mcp import tool_listing
from toold.daemon.transports.mcp.tool_listing import ToolListing, entries
from toold.protocol.json_rpc import MessageProblem
from toold.protocol.mcp.mcp_revision import REVISIONS
from toold.protocol.tool_call import Annotations, ToolInfo
from toold.tools import FULL_TOOLSET, Tool, ToolCatalog, ToolRegistry, Toolset, ToolsetView

NEW = REVISIONS["2026-07-28"]
ASKED = REVISIONS["2025-11-25"]
HINTS = Annotations(read_only_hint=True, destructive_hint=False, idempotent_hint=False, open_world_hint=False)


def info(schema: dict[str, Any] | None = None, name: str = "t") -> ToolInfo:
    return ToolInfo(name, "A tool.", schema or {"type": "object"}, HINTS)


def selection(make_tool: Callable[..., Tool], count: int) -> ToolsetView:
    async def nothing(*_: Any) -> None: ...

    registry = ToolRegistry([make_tool(f"t{number:03}", nothing) for number in range(count)])
    return ToolCatalog(registry, {FULL_TOOLSET: Toolset(FULL_TOOLSET)}, FULL_TOOLSET).view(FULL_TOOLSET)


def test_invalid_tools_are_omitted() -> None:
    """A tool that the revision's types reject must not cost clients the whole list."""
    odd = info({"type": "object", "properties": {"x": "nonsense"}}, "odd")
    with capture_logs() as logs:
        assert [tool["name"] for tool in entries((info(), odd), ASKED)] == ["t"]
    assert [(entry["tool"], entry["revision"]) for entry in logs] == [("odd", "2025-11-25")]


def test_without_the_sdk_all_tools_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its types are an optional dependency; without them nothing is validated."""
    monkeypatch.setattr(tool_listing, "official_types", lambda: None)
    assert len(entries((info(), info({"type": "string"})), ASKED)) == 2


async def test_pages(make_tool: Callable[..., Tool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page has the next cursor, and the same order each time; the last has none."""
    monkeypatch.setattr(tool_listing, "_PAGE", 4)
    tools, listed, cursor = selection(make_tool, 10), ToolListing(), None
    names: list[str] = []
    for _ in range(3):
        page = await listed.page(tools, NEW, cursor)
        assert not isinstance(page, MessageProblem)
        names += [tool["name"] for tool in page[0]]
        cursor = page[1]
    assert cursor is None
    assert names == [f"t{number:03}" for number in range(10)]


@pytest.mark.parametrize("cursor", ["", "x", 7, "0123456789ab-4", "4", {}])
async def test_invalid_cursors(make_tool: Callable[..., Tool], cursor: object) -> None:
    """A cursor of another listing is rejected: the client has to list from the start."""
    page = await ToolListing().page(selection(make_tool, 10), NEW, cursor)
    assert isinstance(page, MessageProblem)
    assert "list from the start" in page.message


async def test_lists_are_rebuilt_when_the_tools_change(make_tool: Callable[..., Tool]) -> None:
    """Otherwise a list is built once, for all clients."""
    listed = ToolListing()
    few, more = selection(make_tool, 2), selection(make_tool, 3)
    pages = await asyncio.gather(*(listed.page(few, NEW, None) for _ in range(5)))
    assert [len(page[0]) for page in pages if not isinstance(page, MessageProblem)] == [2] * 5
    page = await listed.page(more, NEW, None)
    assert not isinstance(page, MessageProblem)
    assert len(page[0]) == 3
