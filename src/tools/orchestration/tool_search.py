"""The tools ``search_tools`` and ``describe_tools``: find tools without listing all of them."""

import asyncio
from typing import Any, Final

import msgspec
from pydantic import AliasChoices, Field

from ...protocol.error_codes import ToolNotFoundError
from ..orchestration_context import LookupContext
from ..tool import Arguments, ToolOutput, tool
from ..tool_ranking import rank

LINE_CHARS: Final = 160
MAX_FOUND: Final = 50
MAX_DESCRIBED: Final = 20


class SearchArguments(Arguments):
    """A search for a tool."""

    query: str = Field(min_length=1, max_length=1000, description="A few words: what the tool should do.")
    limit: int = Field(default=10, ge=1, le=MAX_FOUND, description="Maximum number of tools, best match first.")


class DescribeArguments(Arguments):
    """The names of tools."""

    names: list[str] = Field(
        min_length=1, max_length=MAX_DESCRIBED, validation_alias=AliasChoices("names", "tool_names")
    )


@tool("search_tools", read_only=True, open_world=False)
async def search_tools(arguments: SearchArguments, context: LookupContext) -> list[dict[str, str]]:
    """Find tools by a few words: returns their names with a one-line description, best match first. `describe_tools`
    then shows their arguments.
    """
    view = context.toolset_view
    if not view.is_indexed:
        await asyncio.to_thread(lambda: view.index)
    found = rank(arguments.query, view.index)[: arguments.limit]
    return [{"name": info.name, "description": first_line(info.description)} for info, _ in found]


@tool("describe_tools", read_only=True, open_world=False)
async def describe_tools(arguments: DescribeArguments, context: LookupContext) -> ToolOutput:
    """Show the description, the arguments as JSON Schema, and the annotations of tools by their names."""
    described: list[dict[str, Any]] = []
    unknown: list[str] = []
    for name in dict.fromkeys(arguments.names):
        try:
            described.append(msgspec.to_builtins(context.find_tool(name).info))
        except ToolNotFoundError as error:
            unknown.append(error.message)
    if unknown:
        raise ToolNotFoundError(" ".join(unknown))
    return ToolOutput(data=described)


def first_line(description: str) -> str:
    """A description's first sentence on one line, truncated if it is long."""
    line = " ".join(description.split())
    sentence = line.partition(". ")[0]
    if len(sentence) <= LINE_CHARS:
        return sentence.removesuffix(".")
    return f"{sentence[: LINE_CHARS - 1].rsplit(' ', 1)[0]}…"
