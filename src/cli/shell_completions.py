"""Shell completion of names that only the daemon knows: tools, arguments, sources and running calls.

A completion never fails and never waits long: without an answer, there are no suggestions.
"""

import asyncio
import logging
import os
import re
from collections.abc import Iterator
from typing import Any, Final

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string

from ..client import ConnectionFailedError, ConnectionLostError
from ..protocol.error_codes import CallError
from ..protocol.tool_call import ToolInfo
from .argument_schema import choices, items_of, types_of, written
from .daemon_connection import connected
from .operator_client import operator_request

PATIENCE_S: Final = 2.0
"""How long a completion waits for the daemon's list of tools."""
_SCALARS: Final = frozenset({"string", "integer", "number", "boolean"})
"""Types that can be written after ``key=``; others are JSON, after ``key:=``."""
_BREAK: Final = re.compile(r"[=:]+")
"""The characters of arguments at which bash splits words (COMP_WORDBREAKS)."""


def complete_tool(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
    """The names of tools, with the first line of their descriptions."""
    tools = _tools(ctx.params.get("toolset"))
    return [
        CompletionItem(tool.name, help=tool.description.strip().partition("\n")[0])
        for tool in tools
        if tool.name.startswith(incomplete)
    ]


def complete_argument(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
    """The arguments of the tool that the command line names; after ``key=``, the values that the key may have."""
    tool = next((tool for tool in _tools(ctx.params.get("toolset")) if tool.name == ctx.params.get("name")), None)
    if tool is None:
        return []
    used = {re.split("[:=]", word, maxsplit=1)[0] for word in ctx.params.get("words") or ()}
    return list(argument_items(tool, used, incomplete))


def argument_items(tool: ToolInfo, used: set[str], incomplete: str) -> Iterator[CompletionItem[Any]]:
    """The suggestions for one argument. Keys that are ``used`` are omitted, except those of arrays, which may be
    repeated."""
    schema = tool.input_schema
    key, equals, _ = incomplete.partition("=")
    for name, part in schema.get("properties", {}).items():
        types = types_of(part, schema)
        if not equals and name.startswith(key) and (name not in used or "array" in types):
            items = types_of(items_of(part, schema), schema) if types == {"array"} else types
            sign = "=" if items & _SCALARS else ":="
            yield CompletionItem(f"{name}{sign}", help=" ".join(str(part.get("description", "")).split())[:80])
        elif equals and name == key.removesuffix(":"):
            values = [written(value) for value in choices(part, schema)]
            values = values or (["true", "false"] if "boolean" in types else [])
            yield from (CompletionItem(f"{key}={value}") for value in values if f"{key}={value}".startswith(incomplete))


def complete_source(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
    """The names of the running daemon's sources."""
    return _matching(incomplete, (source["name"] for source in _asked("/sources").get("sources", ())))


def complete_provider(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
    """The names of the running daemon's providers."""
    settings = _asked("/settings").get("settings", {})
    configured = str(settings.get("providers", {}).get("value", "none"))
    names = ["kimi", "glm", *(name for name in configured.split(", ") if name != "none")]
    return _matching(incomplete, iter(names))


def complete_call(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
    """The ids of running calls."""
    return _matching(incomplete, (call["id"] for call in _asked("/calls").get("running", ())))


def _matching(incomplete: str, values: Iterator[str]) -> list[CompletionItem[Any]]:
    return [CompletionItem(value) for value in values if value.startswith(incomplete)]


def _asked(path: str) -> dict[str, Any]:
    try:
        return operator_request("GET", path)
    except (click.ClickException, OSError):
        return {}


def _tools(toolset: str | None) -> tuple[ToolInfo, ...]:
    try:
        return asyncio.run(_listed(toolset))
    except (click.ClickException, CallError, ConnectionFailedError, ConnectionLostError, OSError, TimeoutError):
        return ()


async def _listed(toolset: str | None) -> tuple[ToolInfo, ...]:
    async with asyncio.timeout(PATIENCE_S), connected(toolset=toolset, all_tools=True) as client:
        return await client.list_tools()


# --- bash ------------------------------------------------------------------------------------------------------------


class ToolBashComplete(BashComplete):
    """Completion for bash, which splits ``key=value`` into three words and replaces only the last one. No space follows
    ``key=``."""

    source_template = """\
%(complete_func)s() {
    local IFS=$'\\n' response type value
    response=$(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD %(complete_var)s=bash_complete $1)
    COMPREPLY=()
    for completion in $response; do
        IFS=',' read -r type value <<< "$completion"
        if [[ $type == dir ]]; then compopt -o dirnames
        elif [[ $type == file ]]; then compopt -o default
        elif [[ $type == plain ]]; then COMPREPLY+=("$value")
        fi
    done
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace; fi
    return 0
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    _replaced = ""
    """The part of the word that bash keeps: up to the last character at which it splits."""

    def get_completion_args(self) -> tuple[list[str], str]:
        pieces = split_arg_string(os.environ["COMP_WORDS"])
        number = int(os.environ["COMP_CWORD"])
        *words, incomplete = joined_words([*pieces[1:number], pieces[number] if number < len(pieces) else ""])
        *_, self._replaced = ["", *(incomplete[: found.end()] for found in _BREAK.finditer(incomplete))]
        return words, incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        return f"{item.type},{item.value.removeprefix(self._replaced)}"


def joined_words(pieces: list[str]) -> list[str]:
    """The words that bash has split into these pieces: ``["a:=1", "b"]`` for ``["a", ":=", "1", "b"]``."""
    words: list[str] = []
    joins = False
    for piece in pieces:
        is_break = _BREAK.fullmatch(piece) is not None
        if words and (is_break or joins):
            words[-1] += piece
        else:
            words.append(piece)
        joins = is_break
    return words


def register() -> None:
    """Use the class for bash, and print nothing else. Called only if a shell asks for completion."""
    logging.getLogger("toold.client").addHandler(logging.NullHandler())
    add_completion_class(ToolBashComplete)
