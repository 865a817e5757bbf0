"""``toold tools``: lists the tools, or shows one tool and its arguments."""

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click
import msgspec

from ..client import MCPWebSocketClient
from ..protocol.error_codes import CallError, ErrorCode
from ..protocol.name_suggestions import close_names, did_you_mean
from ..protocol.terminal_text import terminal_safe
from ..protocol.tool_call import ToolInfo
from .argument_schema import Schema, choices, types_in_words
from .console_tables import print_table
from .daemon_connection import connected, run, toolset_option
from .shell_completions import complete_tool
from .terminal_output import say, say_json


@click.command()
@click.argument("name", required=False, shell_complete=complete_tool)
@click.option(
    "--json", "as_json", is_flag=True, help="Print a JSON array, or with NAME one JSON object with the schema."
)
@click.option(
    "--long",
    is_flag=True,
    help="Show the whole first sentence of each description, and the tool's hints, such as read-only.",
)
@toolset_option
def command(name: str | None, as_json: bool, long: bool, toolset: str | None) -> None:
    """List the tools of a toolset, by default the daemon's default toolset. With NAME, show the arguments of one tool.

    The list has one line per tool, cut at the width of the terminal (80 columns if there is none). TOOLD_TOOLSET also
    selects the toolset. NAME may be any tool of the daemon unless a toolset is selected.
    """
    shown = run(_shown(name, toolset))
    if as_json:
        say_json(msgspec.json.encode(shown))
    elif isinstance(shown, ToolInfo):
        _print_tool(shown)
    elif long:
        whole = [(tool.name, first_sentence(tool.description), ", ".join(hints(tool))) for tool in shown]
        print_table(("NAME", "DESCRIPTION", "HINTS"), whole)
    else:
        rows = [(tool.name, first_sentence(tool.description)) for tool in shown]
        print_table(("NAME", "DESCRIPTION"), rows, shrink="DESCRIPTION", cut_plain=True)


async def _shown(name: str | None, toolset: str | None) -> ToolInfo | tuple[ToolInfo, ...]:
    async with connected(toolset=toolset, all_tools=name is not None) as client:
        return await client.list_tools() if name is None else await find_tool(name, client)


async def find_tool(name: str, client: MCPWebSocketClient) -> ToolInfo:
    """The tool of this name, listed or not, if the client may call it.

    Raises:
        click.UsageError: there is no such tool; the message suggests a similar name, or lists the tools.
        CallError: the tool is quarantined; the message says why and what the operator can do.
    """
    tools = await client.list_tools()
    names = [tool.name for tool in tools]
    if name in names:
        return tools[names.index(name)]
    if "search_tools" in names:  # the toolset lists only some of its tools
        try:
            described = await client.call("describe_tools", {"names": [name]})
            return msgspec.convert(described.structured, tuple[ToolInfo])[0]
        except CallError as error:
            if error.code is ErrorCode.PERMISSION_DENIED:
                raise
    hint = did_you_mean(close_names(name, names, n=1)) or f"the tools are {', '.join(names)}"
    raise click.UsageError(f"there is no tool {name!r}; {hint}")


def hints(tool: ToolInfo) -> list[str]:
    """The names of the MCP annotations that are true for the tool."""
    annotations = tool.annotations
    words = {
        "read-only": annotations.read_only_hint,
        "destructive": annotations.destructive_hint,
        "idempotent": annotations.idempotent_hint,
        "open-world": annotations.open_world_hint,
    }
    return [word for word, true in words.items() if true]


def first_sentence(text: str) -> str:
    """The first sentence of a description, on one line."""
    return re.split(r"(?<=[.!?]) ", _paragraph(text), maxsplit=1)[0]


def _paragraph(text: str) -> str:
    return " ".join(text.strip().partition("\n\n")[0].split())


def example(tool: ToolInfo) -> str:
    """A command line that calls the tool with its required arguments, or with its first one if none is required."""
    properties: Mapping[str, Schema] = tool.input_schema.get("properties", {})
    keys = tool.input_schema.get("required") or list(properties)[:1]
    words = [_example_word(key, properties.get(key, {}), tool.input_schema) for key in keys]
    return " ".join(["toold call", tool.name, *words])


def _example_word(key: str, part: Schema, root: Schema) -> str:
    values = choices(part, root)
    if values:
        return f"{key}={values[0]}"
    types = types_in_words(part, root)
    samples = {"any": "='…'", "string": "='…'", "integer": "=1", "number": "=0.5", "boolean": "=true"}
    return key + next((sample for name, sample in samples.items() if name in types), ":='{…}'")


def _print_tool(tool: ToolInfo) -> None:
    say(tool.name + (f"  ({', '.join(hints(tool))})" if hints(tool) else ""))
    say(terminal_safe(tool.description.strip(), keep="\n") + "\n")
    schema = tool.input_schema
    required = schema.get("required", ())
    rows = [
        (key, types_in_words(part, schema), _default(key, part, required), _paragraph(part.get("description", "")))
        for key, part in schema.get("properties", {}).items()
    ]
    if rows:
        print_table(("ARGUMENT", "TYPE", "DEFAULT", "DESCRIPTION"), rows)
    else:
        say("It takes no arguments.")
    say(f"{'' if sys.stdout.isatty() else chr(10)}Example: {terminal_safe(example(tool))}")


def _default(key: str, part: Mapping[str, Any], required: Sequence[str]) -> str:
    if key in required:
        return "(required)"
    return msgspec.json.encode(part["default"]).decode() if "default" in part else ""
