"""Finding a tool, and reading all of it."""

from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError, ToolNotFoundError
from toold.tools import Answer, Tool, bind, load_registry
from toold.tools.orchestration.tool_search import LINE_CHARS, describe_tools, first_line, search_tools

TOOLS = {tool.name: tool for tool in load_registry().tools}


@pytest.fixture
def finding(context: Any) -> Any:
    """A call whose session may call the daemon's own tools, but for ``consensus``."""
    context.tools = {name: tool for name, tool in TOOLS.items() if name != "consensus"}
    return context


async def test_search_answers_names_with_a_line(finding: Any) -> None:
    """The likeliest first, as many as are wanted."""
    arguments = bind(search_tools, {"query": "search the web", "limit": 3})
    found = await search_tools.function(arguments, finding)
    assert len(found) == 3
    assert found[0].keys() == {"name", "description"}
    assert "glm_web_search" in [one["name"] for one in found]
    assert all(len(one["description"]) <= LINE_CHARS for one in found)


async def test_search_finds_what_the_session_may_call(finding: Any) -> None:
    """What its toolset leaves out is not there."""
    found = await search_tools.function(bind(search_tools, {"query": "consensus of several models"}), finding)
    assert "consensus" not in [one["name"] for one in found]


async def test_describe_answers_all_there_is(finding: Any) -> None:
    """Description, schema and annotations, in the order that was asked for, each once."""
    answer = await describe_tools.function(bind(describe_tools, {"names": ["echo", "chat", "echo"]}), finding)
    assert isinstance(answer, Answer)
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
def test_what_is_found_and_described_is_bounded(tool: Tool, arguments: dict[str, Any], field: str) -> None:
    """50 names of a search, 20 whole descriptions."""
    with pytest.raises(InvalidArgumentsError, match=f"{field} should"):
        bind(tool, arguments)


async def test_describe_names_all_that_are_not_there(finding: Any) -> None:
    """In one error."""
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
    """On one line, cut where it is long."""
    assert first_line(description) == line
