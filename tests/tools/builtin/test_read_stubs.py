"""``read_stubs`` returns an index of functions and the requested signatures."""

from dataclasses import replace
from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError, ToolNotFoundError
from toold.tools import Toolset, bind, load_registry
from toold.tools.builtin.read_stubs import read_stubs

OWN = {tool.name: tool for tool in load_registry().tools}


@pytest.fixture(autouse=True)
def offered(context: Any) -> None:
    context.tools, context.toolset = OWN, Toolset("mine", ("echo", "version"), presentation="code")


async def read(context: Any, **arguments: Any) -> str:
    text = await read_stubs.run(bind(read_stubs, arguments), context)
    assert isinstance(text, str)
    return text


async def test_without_arguments_an_index_is_returned(context: Any) -> None:
    """The index has one line per function that a program may call in this session."""
    index = (await read(context)).splitlines()
    assert index[0] == "tools:"
    names = [line.partition(":")[0].strip() for line in index[1:]]
    assert names == ["describe_tools", "echo", "read_result", "search_tools", "version"]


async def test_names_return_signatures(context: Any) -> None:
    """A name can be a tool or a function of a module."""
    text = await read(context, names=["version", "tools.echo"])
    assert "async def version() -> Any:" in text
    assert "text: str = " in text
    assert "search_tools" not in text


async def test_number_of_names_is_bounded(context: Any) -> None:
    """At most 50 signatures can be requested at once."""
    with pytest.raises(InvalidArgumentsError, match="names should have at most 50 items"):
        await read(context, names=["version"] * 51)


async def test_module_returns_all_its_signatures(context: Any) -> None:
    """All signatures of the module are returned, with or without names."""
    assert (await read(context, module="tools")).count("async def ") == 5
    assert (await read(context, module="tools", names=["echo"])).count("async def ") == 5


async def test_large_listings_are_shortened(context: Any) -> None:
    """The index has the number of functions per module; a large module has only an index, and signatures by name."""
    few, many = (
        [replace(OWN["echo"], source=source, name=f"{source}_{n:03}") for n in range(count)]
        for source, count in (("few", 9), ("many", 500))
    )
    context.tools, context.toolset = {tool.name: tool for tool in (*few, *many)}, Toolset("all")
    assert (await read(context)).startswith("few: 9 functions\nmany: 500 functions\nUse `module`")
    assert (await read(context, module="few")).count("async def ") == 9
    text = await read(context, module="many", names=["few_007"])
    assert text.startswith("many:\n  tool_000: Return")
    assert "500 functions; use `names` to get signatures" in text
    assert text.count("async def ") == 1


async def test_unknown_names_are_rejected_with_suggestions(context: Any) -> None:
    """Tools outside the toolset are unknown, too."""
    with pytest.raises(ToolNotFoundError, match="did you mean 'echo'"):
        await read(context, names=["ehco"])
    with pytest.raises(ToolNotFoundError, match="no tool 'chat'"):
        await read(context, names=["chat"])
    with pytest.raises(InvalidArgumentsError, match=r"unknown module 'toolz'; did you mean 'tools'\?$"):
        await read(context, module="toolz")
    with pytest.raises(InvalidArgumentsError, match="known: tools"):
        await read(context, module="crm")


async def test_without_tools_it_says_so(context: Any) -> None:
    context.tools = {}
    assert "no tools" in await read(context)
