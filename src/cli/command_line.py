"""The root of the command line. It holds each command's name and help line; a command's module is imported on use."""

import errno
import gc
import logging
import os
import sys
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import click

from ..version import __version__
from .terminal_output import text_for_terminal


class LazyGroup(click.Group):
    """Commands by name, module and help line, so that ``toold --help`` imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names, in the order of the table."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        """The command, from its module; None if there is no such command."""
        if cmd_name not in _COMMANDS:
            return None
        module, name, _ = _COMMANDS[cmd_name]
        command: click.Command = getattr(_import_without_collections(module), name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """The names of the commands, from the table, and the options."""
        from click.shell_completion import CompletionItem

        names = [CompletionItem(name, help=row[2]) for name, row in _COMMANDS.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Errors are made safe for the terminal, because they may quote text from the daemon."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            if sys.stderr.isatty():
                error.message = text_for_terminal(error.message)  # type: ignore[misc] # as click shows it
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        """The list that ``--help`` shows."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, _, help_line) in _COMMANDS.items()])


def _import_without_collections(module: str) -> ModuleType:
    """Import a module of this package, without garbage collection.

    The modules of ``serve`` create hundreds of thousands of objects, and all live until the process ends. Searching
    them for garbage took a sixth of the CPU time of the import.
    """
    name = f"{__package__}.{module}"
    if name in sys.modules:
        return sys.modules[name]
    enabled = gc.isenabled()
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


_COMMANDS: Final = {
    "serve": ("serve_command", "command", "Start the daemon in the foreground."),
    "init": ("init_command", "command", "Write a commented toold.toml."),
    "call": ("call_command", "command", "Call a tool: toold call chat prompt='Hello'."),
    "tools": ("tools_command", "command", "List the tools, or show one tool and its arguments."),
    "status": ("status_command", "command", "Show current state and recent calls."),
    "calls": ("calls_command", "command", "Show running and recent calls, by session."),
    "cancel": ("operator_commands", "cancel", "Cancel a running call of any client."),
    "sources": ("sources_command", "command", "List, check, approve and add tool sources."),
    "hooks": ("hooks_command", "command", "Print examples of hooks, and ask a hook about a call."),
    "agents": ("agents_command", "command", "List, check and run hosted agents, and approve their calls."),
    "deploy": ("deploy_command", "deploy", "Deploy an agent as a job."),
    "undeploy": ("deploy_command", "undeploy", "Remove a deployed agent and everything created for it."),
    "jobs": ("jobs_command", "command", "List, show and cancel the jobs of deployments."),
    "prompts": ("prompts_command", "command", "Show a prompt that hosted agents use, and its source."),
    "providers": ("providers_command", "command", "List and check the providers: keys, models, prices."),
    "ui": ("ui_command", "command", "Open the dashboard in a browser, signed in."),
    "stubs": ("stubs_command", "command", "Write the tools as typed Python functions."),
    "reload": ("operator_commands", "reload", "Reload the daemon's configuration."),
    "stop": ("operator_commands", "stop", "Stop the daemon gracefully."),
    "audit": ("audit_command", "command", "Show, export and verify the audit trail."),
    "store": ("store_command", "command", "Migrate the nodes' shared database, or copy data to or from it."),
    "doctor": ("doctor_command", "command", "Check keys, ports, files and SDKs without changing anything."),
    "demo": ("demo_command", "command", "Run a short tour on a temporary daemon."),
    "service": ("service_command", "command", "Run the daemon as a user service: install, remove."),
    "install": ("install_command", "command", "Register toold with an editor: toold install cursor."),
    "import": ("import_command", "command", "Add an editor's MCP servers as sources."),
    "mcp": ("mcp_command", "command", "Serve MCP over stdio; editors start this command."),
    "credentials": ("credentials_command", "command", "Set, list and remove your own credentials for services."),
    "token": ("token_command", "command", "Print the token; create, list and revoke named tokens."),
}
"""Name: module, the command's name in it, and the line that ``toold --help`` shows."""


# click suggests similar names from ``commands``.
@click.group(
    cls=LazyGroup,
    commands={name: click.Command(name) for name in _COMMANDS},
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="toold")
@click.pass_context
def toold(ctx: click.Context) -> None:
    """A tool daemon: one long-lived process that answers calls over WebSocket, MCP, OpenAI's API and A2A.

    Commands find the daemon through TOOLD_HOST, TOOLD_PORT and TOOLD_TOKEN if they are set, otherwise through the
    files in its state directory (TOOLD_STATE_DIR).

    \b
    Exit codes:
      0    success
      1    the call or command failed
      2    invalid command line or setting
      3    no daemon (or Supabase) reachable, or the token was refused
      130  interrupted by Ctrl-C
    """
    if os.environ.get("NO_COLOR"):  # no-color.org; rich reads it itself
        ctx.color = False
    # The commands report the client library's errors themselves.
    logging.getLogger("toold.client").addHandler(logging.NullHandler())


def main(args: list[str] | None = None) -> Any:
    """Run the command line; ends the process."""
    if os.environ.get("_TOOLD_COMPLETE"):  # a shell asks for suggestions or its script, by click's convention
        from .shell_completions import register

        register()
    try:
        return toold.main(args, prog_name="toold")
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        # Python would report unwritten output a second time at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(f"toold: cannot write {error.filename or 'the output'}: {error.strerror}")
