"""The command's root. It knows each command's name and one line; the module behind it is imported when it runs."""

import errno
import logging
import os
import sys
from importlib import import_module
from typing import Any

import click

from ..version import __version__


class LazyGroup(click.Group):
    """Commands by name and one line alone, so that ``toold --help`` imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """In the order in which they were named."""
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        """The real command: ``command`` of the module ``NAME_command``."""
        if cmd_name not in self.commands:
            return None
        command: click.Command = import_module(f".{cmd_name}_command", __package__).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        """The list that ``--help`` shows."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.short_help or "") for name, command in self.commands.items()])


def _named(**lines: str) -> dict[str, click.Command]:
    return {name: click.Command(name, short_help=line) for name, line in lines.items()}


_COMMANDS = _named(
    serve="Start the daemon in the foreground.",
    call="Call a tool: toold call chat prompt='Hello'.",
    tools="List the tools, or show one with its arguments.",
    status="Show what the daemon does and did.",
    calls="Show the calls that run, and the last ones, by session.",
    cancel="End a running call, whoever made it.",
    sources="Show, check and approve sources of tools: list, check, approve.",
    stubs="Write the tools as typed Python functions.",
    reload="Have the daemon read its configuration again.",
    stop="Stop the daemon in good order.",
    audit="Read and check calls: tail, export, stats, verify.",
    doctor="Check keys, ports, files and SDKs; change nothing.",
    demo="Take a tour of a daemon of its own, some seconds long.",
    service="Have the daemon started with your session: install, remove.",
    install="Tell an editor of the tools: toold install cursor.",
    mcp="Serve an editor over stdio, by MCP; the editor starts it.",
    token="Print the token; make, list and revoke named ones.",  # noqa: S106 - a command's help
)


@click.group(cls=LazyGroup, commands=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="toold")
@click.pass_context
def toold(ctx: click.Context) -> None:
    """The tool daemon: one long-lived process that answers tool calls over WebSocket and MCP.

    Commands that need the daemon find it by TOOLD_HOST, TOOLD_PORT and TOOLD_TOKEN, else by the files that it leaves
    in its state directory (TOOLD_STATE_DIR). They exit with 0 where all went well, 1 for a call's error, 2 for a wrong
    command line or setting, 3 where no daemon could be reached, or it did not let them in, 130 after Ctrl-C.
    """
    if os.environ.get("NO_COLOR"):  # no-color.org; rich knows of it by itself
        ctx.color = False
    # What the client library logs is said by the commands in their own words.
    logging.getLogger("toold.client").addHandler(logging.NullHandler())


def main(args: list[str] | None = None) -> Any:
    """Run the command line; ends the process."""
    try:
        return toold.main(args, prog_name="toold")
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        # What is still to be written goes nowhere, or Python would complain of it once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(f"toold: cannot write {error.filename or 'the output'}: {error.strerror}")
