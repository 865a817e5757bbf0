"""``toold hooks``: prints example programs, and asks a hook in the same way as the daemon."""

import asyncio
import json
import sys
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import click

from ..protocol.name_suggestions import close_names, did_you_mean
from .call_arguments import parse_word
from .command_settings import settings_with
from .settings_file import find_settings_file
from .terminal_output import say

if TYPE_CHECKING:
    from ..call_hooks import HookSettings

EXAMPLES: Final = ("redact_personal_data", "refuse_by_rule")
"""The modules of ``hook_examples``."""


@click.group()
def command() -> None:
    """Print example hooks, or ask a configured hook about a call. The tables [hooks.NAME] in toold.toml configure
    hooks.

    Hooks are programs or servers that are asked before and after each call (docs/hooks.md).
    """


@command.command(short_help="Print an example program, to copy and adapt.")
@click.argument("name", type=click.Choice(EXAMPLES))
def example(name: str) -> None:
    """Print one of the example programs. It needs only Python, and its first lines say how to use it.

    \b
    toold hooks example redact_personal_data > redact_personal_data.py
    """
    say(resources.files("toold.hook_examples").joinpath(f"{name}.py").read_text(encoding="utf-8"), nl=False)


@command.command(short_help="Ask a hook about a made-up call.")
@click.argument("name")
@click.argument("tool")
@click.argument("words", nargs=-1, metavar="[key=text | key:=json]...")
@click.option(
    "--result",
    metavar="TEXT",
    help="Ask what the hook does after a call with this result.  [default: ask what it does before the call]",
)
@click.option("--principal", default="local", show_default=True, help="The principal of the call.")
@click.option("--config", metavar="PATH", help="The settings file.  [default: the running daemon's]")
def ask(name: str, tool: str, words: tuple[str, ...], result: str | None, principal: str, config: str | None) -> None:
    """Ask the hook NAME about a call of TOOL with these arguments, and print what happens to the call.

    The tool is not called, and no running daemon is needed: if the hook is a program, this command starts it. Exits
    with 1 if the hook refuses the call, or gives no usable answer.
    """
    file = find_settings_file(config)
    in_use = config or file.before is not None  # a named file that does not exist is an error
    hooks = settings_with({"config": str(file.path) if in_use else None}).hooks
    if name not in hooks:
        hint = did_you_mean(close_names(name, hooks, n=1)) or f"configured: {', '.join(hooks) or 'none'}"
        raise click.UsageError(f"there is no hook {name!r} in {file.path}; {hint}")
    parsed = map(parse_word, words)
    arguments = {word.key: json.loads(word.text) if word.is_json else word.text for word in parsed}
    outcome, succeeded = asyncio.run(_ask(name, hooks[name], tool, principal, arguments, result))
    say(outcome)
    sys.exit(not succeeded)


async def _ask(
    name: str, settings: "HookSettings", tool: str, principal: str, arguments: dict[str, Any], result: str | None
) -> tuple[str, bool]:
    """The outcome of the call, in words, and whether the hook allows it."""
    from ..call_hooks import CallHooks, HookedCall
    from ..protocol.error_codes import CallError
    from ..protocol.tool_call import Metadata, TextContent, Timings, ToolResult

    hooks = CallHooks()
    hooks.apply({name: settings})
    call = HookedCall("example", tool, "example", principal, "cli", "toold hooks ask", "full", False, None)
    event = "before" if result is None else "after"
    try:
        if not hooks.covers("before" if result is None else "after", tool, principal):
            return f"{name} is not asked {event} calls of {tool} by {principal}.", True
        if result is None:
            changed = await hooks.before(call, arguments, _unchecked, long=False)
            return ("Allowed." if changed is None else f"Allowed, with {json.dumps(changed[1])}"), True
        outcome = await hooks.after(
            call, arguments, ToolResult(Metadata(0.0, Timings()), (TextContent(result),)), long=False
        )
        return ("Allowed." if outcome is None else f"Allowed, with the result:\n{outcome[0].text}"), True
    except CallError as error:
        return "\n".join([error.message, *hooks.problems]), False
    finally:
        await hooks.close()


async def _unchecked(arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments unchecked: this command does not know the tool."""
    return arguments
