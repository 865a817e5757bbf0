"""``cache_s`` of a source: its forms, what is refused, and which tools get a time."""

from typing import Any

import pytest
from toold.protocol.tool_call import Annotations
from toold.sources import SourceSettingsError, read_sources
from toold.sources.cached_tools import with_cache
from toold.sources.source_settings import McpSettings
from toold.tools import JsonSchema, Tool, ToolContext

MCP: dict[str, Any] = {"type": "mcp", "url": "https://tools.example/mcp"}


def times(value: Any) -> Any:
    settings = read_sources({"s": MCP | {"cache_s": value}})["s"]
    assert isinstance(settings, McpSettings)
    return settings.cache_s


def tool(name: str, *, read_only: bool = True, destructive: bool = False) -> Tool:
    async def nothing(_: dict[str, Any], __: ToolContext) -> None:
        return None

    hints = Annotations(read_only, destructive, False, True)
    return Tool(name, "A tool.", JsonSchema({"type": "object"}), nothing, hints, source="s")


def test_one_time_or_one_per_pattern() -> None:
    """A number is for all tools; of a table the first pattern that matches counts; without one there is no cache."""
    tools = [tool("search"), tool("search_now"), tool("look")]
    assert [tool.cache_s for tool in with_cache(tools, times(60))] == [60, 60, 60]
    chosen = with_cache(tools, times({"search_now": 0, "search*": 2.5}))
    assert [tool.cache_s for tool in chosen] == [2.5, 0, 0]
    assert with_cache(tools, ()) == tuple(tools)


def test_only_read_only_tools_get_a_time() -> None:
    """A tool that may have an effect has none, whatever the pattern."""
    tools = [tool("write", read_only=False), tool("odd", destructive=True), tool("read")]
    assert [tool.cache_s for tool in with_cache(tools, times(60))] == [0, 0, 60]


@pytest.mark.parametrize("value", [-1, True, "60", float("inf"), float("nan"), 86_401, {"a": "60"}, {"a": -1}, [60]])
def test_invalid_times(value: Any) -> None:
    """The error names the key and both forms."""
    with pytest.raises(SourceSettingsError, match=r"\[sources.s\] cache_s must be seconds, 0 to 86400, or a table"):
        times(value)


@pytest.mark.parametrize("value", [{}, {"": 1}, {"x" * 201: 1}, {f"t{number}": 1 for number in range(101)}])
def test_invalid_patterns(value: Any) -> None:
    """The error says how many and how long they may be."""
    with pytest.raises(SourceSettingsError, match="cache_s must have 1 to 100 patterns of tools, of up to 200"):
        times(value)


def test_sign_ins_of_users_have_no_cache() -> None:
    """A result would be answered after its user has signed out."""
    auth = {"type": "oauth", "per": "user"}
    with pytest.raises(SourceSettingsError, match="cache_s is not for auth with per"):
        read_sources({"s": MCP | {"auth": auth, "cache_s": 60}})
    read_sources({"s": MCP | {"auth": auth | {"per": "daemon"}, "cache_s": 60}})


def test_agents_have_no_cache() -> None:
    """A call of a remote agent is work, so the setting does not exist."""
    with pytest.raises(SourceSettingsError, match="cache_s is not a setting"):
        read_sources({"s": {"type": "a2a", "url": "https://agents.example", "cache_s": 60}})
