"""Tool search and tool descriptions."""

import threading
from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError, ToolNotFoundError
from toold.tools import Tool, ToolOutput, ToolRegistry, Toolset, bind, load_registry, tool_catalog
from toold.tools.orchestration.tool_search import LINE_CHARS, describe_tools, first_line, search_tools
from toold.tools.tool_catalog import ToolsetView
from toold.tools.tool_ranking import ToolIndex

TOOLS = {tool.name: tool for tool in load_registry().tools}


@pytest.fixture
def finding(context: Any) -> Any:
    """A call whose session may call all built-in tools except ``consensus``."""
    context.tools = {name: tool for name, tool in TOOLS.items() if name != "consensus"}
    return context


async def test_search_returns_names_with_a_short_description(finding: Any) -> None:
    """The best match is first, and ``limit`` bounds the results."""
    arguments = bind(search_tools, {"query": "search the web", "limit": 3})
    found = await search_tools.function(arguments, finding)
    assert len(found) == 3
    assert found[0].keys() == {"name", "description"}
    assert "glm_web_search" in [one["name"] for one in found]
    assert all(len(one["description"]) <= LINE_CHARS for one in found)


async def test_search_finds_only_tools_of_the_toolset(finding: Any) -> None:
    """A tool outside the toolset is not found."""
    found = await search_tools.function(bind(search_tools, {"query": "consensus of several models"}), finding)
    assert "consensus" not in [one["name"] for one in found]


async def test_the_index_is_built_once_in_a_thread(finding: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first search of a toolset does not block the event loop, and later ones use the same index."""
    threads: list[threading.Thread] = []

    class RecordedIndex(ToolIndex):
        def __init__(self, *arguments: Any) -> None:
            threads.append(threading.current_thread())
            super().__init__(*arguments)

    monkeypatch.setattr(tool_catalog, "ToolIndex", RecordedIndex)
    view = ToolsetView(ToolRegistry(finding.tools.values()), Toolset("all", ("*",)))
    monkeypatch.setattr(type(finding), "toolset_view", view)
    for _ in range(2):
        assert await search_tools.function(bind(search_tools, {"query": "echo"}), finding)
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


async def test_describe_returns_the_whole_definition(finding: Any) -> None:
    """Each tool appears once with description, schema and annotations, in the requested order."""
    answer = await describe_tools.function(bind(describe_tools, {"names": ["echo", "chat", "echo"]}), finding)
    assert isinstance(answer, ToolOutput)
    assert isinstance(answer.data, list)
    assert [one["name"] for one in answer.data] == ["echo", "chat"]
    echo = answer.data[0]
    assert echo["inputSchema"] == TOOLS["echo"].info.input_schema
    assert echo["annotations"]["readOnlyHint"] is True


@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        (search_tools, {"query": "files", "limit": 51}, "limit"),
        (describe_tools, {"names": ["echo"] * 21}, "names"),
    ],
)
def test_search_and_description_are_limited(tool: Tool, arguments: dict[str, Any], field: str) -> None:
    """A search returns at most 50 tools, and a request describes at most 20."""
    with pytest.raises(InvalidArgumentsError, match=f"{field} should"):
        bind(tool, arguments)


async def test_describe_names_all_unknown_tools(finding: Any) -> None:
    """One error names every unknown tool."""
    with pytest.raises(ToolNotFoundError, match=r"'eko'.*'consensus'"):
        await describe_tools.function(bind(describe_tools, {"names": ["eko", "echo", "consensus"]}), finding)


@pytest.mark.parametrize(
    ("description", "line"),
    [
        ("Does this. And that.", "Does this"),
        ("Does\n    this", "Does this"),
        ("word " * 60, f"{'word ' * 30}word…"),
        ("", ""),
    ],
)
def test_a_line_is_the_first_sentence(description: str, line: str) -> None:
    """The line contains no line breaks, and a long sentence is truncated."""
    assert first_line(description) == line
