"""``read_stubs`` returns an index of functions and the requested signatures."""

from dataclasses import replace
from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError, ToolNotFoundError
from toold.tools import JsonSchema, Tool, Toolset, bind, load_registry
from toold.tools.builtin.read_stubs import MAX_BYTES, read_stubs

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
    assert "async def echo(" in text
    assert "search_tools" not in text


async def test_number_of_names_is_bounded(context: Any) -> None:
    """At most 50 signatures can be requested at once."""
    with pytest.raises(InvalidArgumentsError, match="names should have at most 50 items"):
        await read(context, names=["version"] * 51)


async def test_module_returns_all_its_signatures(context: Any) -> None:
    """All signatures of the module are returned, with or without names."""
    assert (await read(context, module="tools")).count("async def ") == 5
    assert (await read(context, module="tools", names=["echo"])).count("async def ") == 5


def offer(context: Any, **sources: int) -> None:
    """Let the session have so many tools of each source."""
    tools = [
        replace(OWN["echo"], source=source, name=f"{source}_{n:03}")
        for source, count in sources.items()
        for n in range(count)
    ]
    context.tools, context.toolset = {tool.name: tool for tool in tools}, Toolset("all")


async def test_large_listings_are_shortened(context: Any) -> None:
    """The index has the number of functions per module; a large module has only an index, and signatures by name."""
    offer(context, few=9, many=500)
    assert (await read(context)).startswith("many: 500 functions\nfew: 9 functions\nUse `module`")
    assert (await read(context, module="few")).count("async def ") == 9
    text = await read(context, module="many", names=["few_007"])
    assert text.startswith("# few\n\nasync def tool_007(")
    assert "many:\n  tool_000: Return" in text
    assert text.count("async def ") == 1
    assert text.endswith("use `names` to get signatures.")


async def test_the_index_of_a_large_module_has_pages(context: Any) -> None:
    """Each page has at most 32 KiB and says how to continue; the pages together list every function once."""
    offer(context, many=1250)
    listed: list[str] = []
    offset = 0
    while offset < 1250:
        page = await read(context, module="many", offset=offset)
        assert len(page.encode()) < MAX_BYTES + 300
        lines = [line.partition(":")[0].strip() for line in page.splitlines()[1:-1]]
        listed += lines
        end = offset + len(lines)
        further = f'; continue with module="many", offset={end}' if end < 1250 else ""
        assert page.endswith(f"\nFunctions {offset + 1} to {end} of 1250{further}; use `names` to get signatures.")
        offset = end
    assert len(listed) == len(set(listed)) == 1250


def heavy(number: int) -> Tool:
    """A tool whose signature has 4 KiB."""
    fields = {f"field_{n:02}_{'x' * 30}": {"type": "string", "description": "y" * 60} for n in range(32)}
    schema = JsonSchema({"type": "object", "properties": fields})
    return replace(OWN["echo"], source="crm", name=f"crm_f{number:02}", arguments=schema)


async def test_signatures_have_pages(context: Any) -> None:
    """The signatures of a module are divided into pages of 32 KiB; signatures by name that do not fit are named."""
    context.tools, context.toolset = {f"crm_f{n:02}": heavy(n) for n in range(30)}, Toolset("all")
    shown, pages, offset = 0, 0, 0
    while offset < 30:
        page = await read(context, module="crm", offset=offset)
        assert len(page.encode()) < MAX_BYTES + 300
        shown += page.count("async def ")
        pages += 1
        _, _, place = page.rpartition("offset=")
        offset = int(place.rstrip(".")) if "offset=" in page else 30
        assert offset == shown
    assert pages > 2
    text = await read(context, names=[f"crm_f{n:02}" for n in range(30)])
    first = text.count("async def ")
    assert f"Omitted because the answer would be too long: crm.f{first:02}, " in text
    assert text.endswith("crm.f29. Request them separately.")


async def test_the_list_of_modules_has_pages(context: Any) -> None:
    """With more modules than fit, the largest are first, and the answer says how to continue."""
    offer(context, **{f"source_{'x' * 50}_{n:04}": 1 + n % 2 for n in range(600)})
    page = await read(context)
    assert len(page.encode()) < MAX_BYTES + 300
    assert page.splitlines()[0].endswith("0001: 2 functions")
    last = page.splitlines()[-2]
    assert (await read(context, offset=int(page.rpartition("offset=")[2].rstrip(".")))).splitlines()[0] > last


@pytest.mark.parametrize(("module", "what"), [("tools", "5 functions of tools"), (None, "1 modules")])
async def test_an_offset_beyond_the_end_is_rejected(context: Any, module: str | None, what: str) -> None:
    """The error says how many there are."""
    with pytest.raises(InvalidArgumentsError, match=f"offset: there are only {what}"):
        await read(context, module=module, offset=5)


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
